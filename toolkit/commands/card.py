"""Write README.md, the dataset card for the Hugging Face Hub."""

from collections.abc import Callable
from typing import Annotated, ClassVar

import msgspec

from toolkit.aggregate import drawing, tables, thresholds
from toolkit.command_options import CommandResult, Flag, absent
from toolkit.commands import _sections as sections
from toolkit.commands._description import DescriptionOptions, facts_of, is_replaced, note_origin, section
from toolkit.commands.stats import Counting, prepare, prepare_dataset
from toolkit.describe import card, card_marks, croissant, disclosure
from toolkit.describe.about import About, read_about
from toolkit.describe.card_numbers import PICTURE, CardCounts, Picture, attributes_of, picture_of, root
from toolkit.describe.model import Facts
from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError, MissingExtra, ToolkitError, amount
from toolkit.inspect.counting import Settings, merged_groups, merged_records
from toolkit.inspect.documents import FileDocuments
from toolkit.pages import card as html
from toolkit.stages.context import Context, Outcome, all_values
from toolkit.storage import store_of
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import exists, join, list_files, remove
from toolkit.storage.stores.local.scratch import scratch

_BY = {"label": 1 << 20, "host": 20}
"""The grouping of documents, and the number of shown groups."""

Prepare = Callable[[Settings, str], Counting]


def numbers_of(context: Context, facts: Facts, about: About, first: int | None, *, keep: bool) -> CardCounts:
    """Return the counts of the described documents, and of their attributes.

    Args:
        context: Context of the command.
        facts: about the documents.
        about: settings: of samples, and whether attributes are read.
        first: documents of each file that are read; None for all.
        keep: True if counts are kept, as `toolkit stats` keeps them.

    Raises:
        ToolkitError: naming files that cannot be read.
    """
    settings = Settings(by=list(_BY), lengths=True, samples=about.examples, first=first)

    def documents(settings: Settings, temporary: str) -> Counting:
        return counting_of(context, facts, settings, temporary, keep=keep)

    if facts.is_output:
        numbers = _documents(context, documents, settings)
        if not (about.scores and context.has("mix")):
            return numbers
        return _with_scores(context, facts, numbers, Settings(by=[], first=first), keep=keep)
    if not about.scores:
        return _documents(context, documents, settings)
    try:
        return _documents(context, documents, msgspec.structs.replace(settings, attributes=["all"]))
    except ConfigError:  # there are no attributes
        return _documents(context, documents, settings)


def counting_of(context: Context, facts: Facts, settings: Settings, temporary: str, *, keep: bool) -> Counting:
    """Return the counting task of the described documents."""
    if facts.is_output or context.options.targets:
        return prepare(context, [facts.root], settings, temporary, keep=keep)
    return prepare_dataset(context, context.dataset, settings, temporary, keep=keep)


def _documents(context: Context, prepared: Prepare, settings: Settings) -> CardCounts:
    with scratch() as temporary:
        try:
            counting = prepared(settings, temporary)
            _check_readable(counting)
        except MissingExtra as error:
            return CardCounts(notes=[f"no lengths, hosts and samples: {error}"])
        count(context, counting)
        merged = merged_records(counting.works)
        labels, hosts = (
            tables.Table.of(by, merged_groups(counting.works, number, join(temporary, by)), most, unicode=False)
            for number, (by, most) in enumerate(_BY.items())
        )
        notes = [line for line in counting.notes.splitlines() if line]
        return CardCounts(labels, hosts, merged.lengths, merged.samples, merged.distributions, counting.rules, notes)


def _check_readable(counting: Counting) -> None:
    """Raise MissingExtra if the format's package is missing."""
    for work in counting.works[:1]:
        if work.file:
            next(iter(FileDocuments(work.file, work.writer, work.max_document_bytes, {}, work.types)), None)


def _with_scores(context: Context, facts: Facts, numbers: CardCounts, settings: Settings, *, keep: bool) -> CardCounts:
    """Return the numbers with distributions of rule attributes, tokens and personal data."""
    rules = [rule for stream in sections.mix(context).streams for rule in stream.rules]
    names = [name for name in thresholds.compared(rules) if root(name) in facts.taggers]
    names += [*attributes_of(facts, "TOKENS"), *attributes_of(facts, "PERSONAL")]
    if not names:
        return numbers
    settings = msgspec.structs.replace(settings, attributes=list(dict.fromkeys(names)))
    try:
        with scratch() as temporary:
            counting = prepare(context, (), settings, temporary, keep=keep)
            count(context, counting)
            merged = merged_records(counting.works)
    except ToolkitError as error:
        return msgspec.structs.replace(numbers, notes=[*numbers.notes, f"no scores: {error}"])
    return msgspec.structs.replace(numbers, distributions=merged.distributions, rules=counting.rules)


def count(context: Context, counting: Counting) -> None:
    """Count the documents without current counts.

    Raises:
        ToolkitError: Naming files that cannot be read.
    """
    all_values(counting.results(context, "counting documents"))


class DatasetCard(CommandResult, kw_only=True):
    """The result of `card`.

    Attributes:
        path: Path of the card.
        configurations: Names of the configurations in its head.
        kept: Number of blocks that people wrote, which stay.
        notes: Remarks on what the card lacks or shows.
        fresh: True if it is up to date, with --check.
        markdown: Text of the card, with --dry-run.
    """

    path: str
    configurations: list[str]
    kept: int
    notes: list[str]
    fresh: bool = absent()
    markdown: str = absent("text")


class Options(DescriptionOptions, frozen=True, kw_only=True):
    """Options of ``toolkit card``.

    Attributes:
        html: write card.html, too: the card as a page, with the Croissant description in it for search engines
    """

    EXAMPLES: ClassVar = (
        "toolkit card -c my/corpus.yaml",
        "toolkit card -c my/corpus.yaml about.examples=0",
        "toolkit card -c my/corpus.yaml --html",
        "toolkit card data/released about.name=released",
    )

    html: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """Write, print (--dry-run) or check (--check) ``README.md`` and its picture."""
    about = read_about(section(context), required=())
    facts = facts_of(context, options, min(about.examples, 1))
    path = join(facts.root, card.NAME)
    reads = options.check or options.dry_run
    named = {} if reads else {name: NamedOutput(join(facts.root, name), "") for name in (PICTURE, html.NAME, card.NAME)}
    old = _old(path)
    ours = old is not None and card_marks.is_ours(old)
    if old is not None and not ours and not options.overwrite:
        raise ConfigError(
            f"{path}: expected a card that the toolkit wrote, got another; move it away, or replace it with --overwrite"
        )
    goes = not reads and is_replaced(facts, card.NAME, overwrite=options.overwrite)
    previous = card.read(path, old, about) if old is not None and ours and not goes else card_marks.UserParts()
    numbers = numbers_of(context, facts, about, options.first, keep=not reads)
    drawing = picture_of(numbers, facts) if options.first is None else None
    picture, numbers = _drawn(drawing, join(facts.root, PICTURE), numbers)
    configurations = card.configurations_of(facts, list_files(facts.root))
    disclosed = disclosure.load(facts.root)
    extras = card.CardExtras(
        path,
        drawing.markdown() if drawing and picture else "",
        options.first,
        disclosure.page(disclosed, 2) if disclosed else "",
    )
    text = card.document(facts, about, configurations, numbers, previous, extras)
    names = [configuration.name for configuration in configurations]
    notes = list(dict.fromkeys([*filter(None, card.notes_of(facts, configurations)), *numbers.notes]))
    result = DatasetCard(path=path, configurations=names, kept=len(previous.blocks), notes=notes)
    files = {PICTURE: picture}
    if options.html or exists(join(facts.root, html.NAME)):
        files[html.NAME] = _page(facts.root, text, picture)
    files[card.NAME] = text.encode()
    if options.check:
        late = [name for name, data in files.items() if data is not None and _bytes(join(facts.root, name)) != data]
        lines = [f"{join(facts.root, name)}: expected what the data are now; run `toolkit card`" for name in late]
        result.fresh = not late
        return Outcome("\n".join(lines) or f"{path}: up to date", result, exit_code=1 if late else 0)
    if options.dry_run:
        result.markdown = text
        return Outcome(text.rstrip("\n"), result, for_programs=True)
    for name, data in files.items():
        if data is not None:
            named[name].save(data)
        elif ours:
            remove(join(facts.root, name))
    note_origin(facts, card.NAME)
    if numbers.samples:
        notes.append(f"the card shows texts of {amount(len(numbers.samples), 'document')}; about.examples=0: none")
    lines = [f"{path}: configurations: {', '.join(names) or 'none'}", *(f"note: {note}" for note in notes)]
    return Outcome("\n".join(lines), result)


def _drawn(picture: Picture | None, path: str, numbers: CardCounts) -> tuple[bytes | None, CardCounts]:
    """Return the picture's file, drawn anew only if it shows other numbers; without matplotlib a note says so."""
    if picture is None:
        return None, numbers
    stored = _bytes(path)
    if stored is not None and picture.digest.encode() in stored:
        return stored, numbers
    if drawing.is_installed():
        return picture.drawn(), numbers
    note = f"no picture: {missing_extra('plots', 'pictures', 'matplotlib')}"
    return None, msgspec.structs.replace(numbers, notes=[*numbers.notes, note])


def _page(root: str, text: str, picture: bytes | None) -> bytes:
    """Return the card as a page."""
    described = _bytes(join(root, croissant.NAME))
    if described is None:
        raise ConfigError(
            f"{join(root, croissant.NAME)}: expected a description for card.html; run `toolkit croissant`"
        )
    try:
        return html.page_of(text, {} if picture is None else {PICTURE: picture}, described).encode()
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{join(root, croissant.NAME)}: expected JSON, got: {error}; run `toolkit croissant`"
        ) from None


def _bytes(path: str) -> bytes | None:
    return store_of(path).read(path) if exists(path) else None


def _old(path: str) -> str | None:
    try:
        return None if (data := _bytes(path)) is None else data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"expected UTF-8, got: {error}; move it away", path=path) from None
