"""Write material for a public summary of training content: sources, sizes, domains, processing, opt-outs."""

from typing import Annotated, ClassVar

import msgspec

from toolkit.aggregate.tables import Table
from toolkit.command_options import Flag, positive
from toolkit.commands._description import DescriptionOptions, facts_of, is_replaced, note_origin, section
from toolkit.commands.card import count, counting_of
from toolkit.describe import disclosure
from toolkit.describe.about import read_about
from toolkit.describe.disclosure import Change, FormCounts
from toolkit.describe.model import Facts
from toolkit.errors import ConfigError, amount, short
from toolkit.inspect.counting import Settings, merged_groups
from toolkit.stages.context import Context, Outcome
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import join
from toolkit.storage.stores.local.scratch import scratch

_BY = ("label", "source", "crawl", "host")
_SHOWN = 20
"""Changes that are printed; the result has all."""


class Options(DescriptionOptions, frozen=True, kw_only=True):
    """Options of ``toolkit disclose``.

    Attributes:
        form: the fields: the name of a form that ships (eu-ai-act), or a YAML file
        domains: list the N registered domains with most words (1000)

    Raises:
        ConfigError: If a part of the documents is to be disclosed.
    """

    EXAMPLES: ClassVar = ("toolkit disclose -c my/corpus.yaml", "toolkit disclose data/released --dry-run")

    form: Annotated[str, Flag(metavar="NAME|FILE")] = "eu-ai-act"
    domains: Annotated[int, Flag(parse=positive, metavar="N")] = 1000

    def __post_init__(self) -> None:
        if self.first is not None:
            raise ConfigError("expected all documents, got --first: a disclosure is of all of them")


def run(context: Context, options: Options) -> Outcome:
    """Write, print (--dry-run) or check (--check) ``disclosure.json`` and ``DISCLOSURE.md``."""
    form = disclosure.read_form(options.form)
    about_section = section(context)
    about = read_about(about_section, required=())
    facts = facts_of(context, options, 0)
    path, page = join(facts.root, disclosure.NAME), join(facts.root, disclosure.PAGE)
    reads = options.check or options.dry_run
    outputs = [] if reads else [NamedOutput(path, ""), NamedOutput(page, "")]
    goes = not reads and is_replaced(facts, disclosure.NAME, overwrite=options.overwrite)
    old = None if goes else disclosure.load(facts.root)
    counted = _counted(context, facts, options.domains, keep=not reads)
    result = disclosure.disclosed(form, facts, about, counted, about_section)
    files = [disclosure.to_bytes(result), disclosure.page(result).encode()]
    fresh = old is not None and disclosure.to_bytes(old) == files[0]
    result.path = path
    if old is not None:
        result.changes = disclosure.changes(old, result)
    if options.check:
        text = f"{path}: " + ("up to date" if fresh else "expected what the data are now; run `toolkit disclose`")
        return Outcome("\n".join([text, *_changes(result.changes or [])]), result, exit_code=0 if fresh else 1)
    if options.dry_run:
        return Outcome(files[1].decode().rstrip("\n"), result)
    for output, data in zip(outputs, files, strict=True):
        output.save(data)
    note_origin(facts, disclosure.NAME)
    answered = len(result.answers) - len(result.blank)
    text = f"{path}: {amount(answered, 'field')} answered, {len(result.blank):,} blank: {', '.join(result.blank)}"
    since = _changes(result.changes) if old is not None else []
    return Outcome("\n".join([text, *since]), result)


def _counted(context: Context, facts: Facts, most: int, *, keep: bool) -> FormCounts:
    with scratch() as temporary:
        counting = counting_of(context, facts, Settings(by=list(_BY)), temporary, keep=keep)
        count(context, counting)
        *groups, hosts = (merged_groups(counting.works, i, join(temporary, by)) for i, by in enumerate(_BY))
        labels, sources, crawls = (
            Table.of(by, some, 1 << 20, unicode=False) for by, some in zip(_BY, groups, strict=False)
        )
        return FormCounts(labels, sources, crawls, *disclosure.domains(hosts, join(temporary, "domains"), most))


def _changes(changes: list[Change]) -> list[str]:
    """Return the differences to the disclosure before, for people."""

    def show(value: object) -> str:
        return "nothing" if value is None else short(msgspec.json.encode(value).decode(), 100)

    lines = [
        f"  {change.id}, {change.part}: {show(change.before)} -> {show(change.after)}" for change in changes[:_SHOWN]
    ]
    more = [f"  {len(changes) - _SHOWN:,} more"] if len(changes) > _SHOWN else []
    return [f"since the last one: {amount(len(changes), 'difference')}", *lines, *more]
