"""Material for a disclosure of training content: a form that is data, answered from facts and counts.

What neither records nor the configuration say is blank, and listed. No answer says that it complies with anything.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.aggregate.groups import Group, Groups
from toolkit.aggregate.tables import Table, markdown, without_html
from toolkit.command_options import CommandResult, absent
from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.describe import provenance
from toolkit.describe.about import About, as_list
from toolkit.describe.card_numbers import code
from toolkit.describe.model import Facts
from toolkit.errors import ConfigError, amount, did_you_mean
from toolkit.storage import json_files
from toolkit.storage.paths import join
from toolkit.text.counting import Counts

NAME, PAGE = "disclosure.json", "DISCLOSURE.md"
FORMS = Path(__file__).parents[2] / "configs" / "disclosure"

NOTICE = (
    "Made by `toolkit disclose` from records, data and configuration. It is material for a summary, not the summary "
    "itself, and says nothing on whether a duty is met. What could not be derived is blank, and listed at the end."
)

Row = dict[str, Any]


class FormField(ConfigStruct):
    """A field of a form.

    Attributes:
        id: Name in `about.disclosure` and in the answers.
        field: Its text.
        answer: Name of the fact in `ANSWERS`; None for what only people know.
        source: Page of the field, if another than the form's; `toolkit` for material beside the form.
    """

    id: str
    field: str
    answer: str | None = None
    source: str = ""


class FormSection(ConfigStruct):
    """Fields under a heading."""

    section: str
    fields: list[FormField]


class DisclosureForm(ConfigStruct):
    """A form.

    Attributes:
        source: Page of the fields.
        date: When they were read.
        sections: Fields by heading.
        opt_outs: Taggers that find reservations of rights.
    """

    title: str
    source: str
    date: str
    sections: list[FormSection]
    opt_outs: list[str] = []


class FormAnswer(msgspec.Struct, kw_only=True):
    """An answer to a field.

    Attributes:
        origin: `records` if it is derived, `about` if the configuration gives it, empty if it is blank.
        totals: Numbers in the text, by name.
        rows: Table of the answer.
    """

    id: str = ""
    section: str = ""
    field: str = ""
    source: str = ""
    origin: Literal["records", "about", ""] = ""
    text: str = ""
    totals: dict[str, int] = {}
    rows: list[Row] = []


class Change(msgspec.Struct, kw_only=True):
    """A difference to the disclosure before; a part is a field, or one of its totals, or a row by its first cell."""

    id: str
    part: str
    before: Any = None
    after: Any = None


class Disclosure(CommandResult, kw_only=True):
    """The result of `disclose`; the file has all but `path` and `changes`.

    Attributes:
        source, date: Page of the form, and day of its reading.
        answers: Answers in the order of the form.
        blank: Ids of the fields without an answer.
        suffixes: Version of the public suffix list.
        path: Path of the file.
        changes: Differences to the disclosure before; absent if there was none.
    """

    title: str
    notice: str = NOTICE
    source: str
    date: str
    suffixes: str
    answers: list[FormAnswer]
    blank: list[str]
    path: str = absent()
    changes: list[Change] = absent()


class FormCounts(NamedTuple):
    """Counts of all documents.

    Attributes:
        labels, sources, crawls: Groups by these.
        domains: Registered domains, those with most words first.
        missing: Documents without one.
        suffixes: Version of the public suffix list.
    """

    labels: Table
    sources: Table
    crawls: Table
    domains: Table
    missing: int
    suffixes: str


class _Material(NamedTuple):
    facts: Facts
    about: About
    counted: FormCounts
    form: DisclosureForm


def read_form(name: str) -> DisclosureForm:
    """Return a form by name, or by path of a YAML file.

    Raises:
        ConfigError: If there is none, or it is not what it should be.
    """
    forms = {path.stem: str(path) for path in FORMS.glob("*.yaml")}
    if name not in forms and not name.endswith((".yaml", ".yml")):
        raise ConfigError(f"no form is called {name!r}{did_you_mean(name, forms)}; there are: {', '.join(forms)}")
    source = settings.load(forms.get(name, name))
    form = settings.convert(source, DisclosureForm, "a form")
    for i, section in enumerate(form.sections):
        for j, field in enumerate(section.fields):
            if field.answer is not None and field.answer not in ANSWERS:
                message = f"expected one of {', '.join(ANSWERS)}, got {field.answer!r}"
                raise source.error(("sections", i, "fields", j, "answer"), message)
    return form


# --- registered domains -----------------------------------------------------------------------------------------------


def domains(hosts: Iterable[Group], folder: str, most: int) -> tuple[Table, int, str]:
    """Return registered domains, the number of other documents, and the list's version.

    The list has suffixes of registries and of others (`github.io`). An address stands for itself; a host that is a
    public suffix, too.

    Args:
        hosts: Groups by host.
        folder: Folder for what does not fit into memory.
        most: Number of domains that are listed.
    """
    from publicsuffixlist import PSLFILE, PublicSuffixList

    text = Path(PSLFILE).read_text(encoding="utf-8")
    match = re.search(r"^// VERSION: (\S+)", text, re.MULTILINE)
    suffixes, sums, missing = PublicSuffixList(text.splitlines()), Groups(folder), 0
    for key, row in hosts:
        if (host := msgspec.json.decode(key)) is None:
            missing = row[0]
        else:
            sums.add_sums([msgspec.json.encode(_domain(host, suffixes)).decode()], [row])
    return Table.of("domain", sums, most, unicode=False, rank="words"), missing, match[1] if match else ""


def _domain(host: str, suffixes: Any) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return str(suffixes.privatesuffix(host) or host)


# --- answers ----------------------------------------------------------------------------------------------------------


def _sizes(counts: Counts) -> Row:
    return {"documents": counts.documents, "words": counts.words, "characters": counts.chars, "bytes": counts.bytes}


def _grouped(by: str, table: Table) -> list[Row]:
    """Return a row for each group; none if no document has a value."""
    rows = [{by: value, **_sizes(counts)} for value, counts in table.groups]
    return rows if any(row[by] is not None for row in rows) else []


def _crawled(facts: Facts) -> list[tuple[str, int, str, str]]:
    """Return source, documents, first and last date of WARC records; nothing unless all documents are of these."""
    dated = [(name, item.documents, *item.dates) for name, item in facts.crawled.items() if item.dates]
    return dated if dated and sum(item[1] for item in dated) == facts.rows else []


def _domains(material: _Material) -> FormAnswer:
    counted = material.counted
    if not (rows := _grouped("domain", counted.domains)):
        return FormAnswer()
    totals = {"domains": len(rows) + counted.domains.rest[0], "without": counted.missing}
    text = (
        f"{amount(totals['domains'], 'registered domain')} by the public suffix list of {counted.suffixes}; listed are "
        f"the {len(rows):,} with most words. {amount(counted.missing, 'document')} without a URL that has a host."
    )
    return _answer(text, rows, totals)


def _opt_outs(material: _Material) -> FormAnswer:
    """Return the attributes of opt-out taggers, and effects of rules on them."""
    rows: list[Row] = []
    facts = material.facts
    rules = facts.mixture.rules if facts.mixture else []
    for item in facts.tagged:
        if (made_by := item.made_by) is None or made_by.get("tagger") not in material.form.opt_outs:
            continue
        names = [name for name, tagger in facts.taggers.items() if tagger == made_by["tagger"]]
        row: Row = {"set": item.set, "tagger": f"{made_by['tagger']} {made_by.get('version')}"}
        row["agents"] = ", ".join(made_by.get("options", {}).get("agents", ())) or None
        texts = [(effect, rule, msgspec.json.encode(rule).decode()) for effect, rule in rules]
        rows += [
            {**row, "rule": effect.name, "expression": rule.get("expression"), "documents": effect.documents}
            for effect, rule, text in texts
            if any(provenance.names_key(text, name) for name in names)
        ] or [{**row, "rule": None, "expression": None, "documents": None}]
    return _answer("", rows)


def _takedown(material: _Material) -> FormAnswer:
    if (result := material.facts.takedown) is None:
        return FormAnswer()
    text = f"{amount(result.documents, 'document')} removed on request; the lists by sha256"
    return _answer(text, [{"list": digest} for digest in result.lists], {"documents": result.documents})


def _answer(
    value: Any,
    rows: Sequence[Row] = (),
    totals: Mapping[str, int] | None = None,
    origin: Literal["records", "about"] = "records",
) -> FormAnswer:
    text = "" if value is None else str(value)
    return FormAnswer(origin=origin if text or rows else "", text=text, rows=list(rows), totals=dict(totals or {}))


def _stated(text: str | None) -> FormAnswer:
    """Return an answer from another key of `about:`."""
    return _answer(text, origin="about")


def _agents(about: About) -> str:
    agents = as_list(about.publisher) or as_list(about.creator)
    return "; ".join(", ".join(filter(None, (agent.name, agent.email, agent.url))) for agent in agents)


ANSWERS: dict[str, Callable[[_Material], FormAnswer]] = {
    "version": lambda m: _stated(m.about.version),
    "modified": lambda m: _stated(m.about.date_modified),
    "provider": lambda m: _stated(_agents(m.about)),
    "synthetic": lambda m: _stated({True: "Yes", False: "No"}.get(m.about.rai.hasSyntheticData)),  # type: ignore[arg-type]
    "size": lambda m: _answer("", [{"modality": "text", **_sizes(m.counted.labels.total)}]),
    "latest": lambda m: _answer(max((last for *_, last in _crawled(m.facts)), default=None)),
    "languages": lambda m: _answer("", _grouped("language", m.counted.labels) if m.facts.languages else []),
    "inputs": lambda m: _answer("\n".join(map(provenance.collection, m.facts.ingested))),
    "sources": lambda m: _answer("", _grouped("source", m.counted.sources)),
    "crawls": lambda m: _answer("", _grouped("crawl", m.counted.crawls)),
    "period": lambda m: _answer(
        "", [dict(zip(("source", "documents", "first", "last"), item, strict=True)) for item in _crawled(m.facts)]
    ),
    "domains": _domains,
    "opt_outs": _opt_outs,
    "takedowns": _takedown,
    "processing": lambda m: _answer("\n".join(provenance.steps(m.facts))),
}
"""Answers by the names that forms have for them."""


def disclosed(form: DisclosureForm, facts: Facts, about: About, counted: FormCounts, section: ConfigNode) -> Disclosure:
    """Return the answers to a form; what `about.disclosure` gives stands in place of a derived text, beside its table.

    Raises:
        ConfigError: If the configuration answers a field that the form does not have.
    """
    ids = [field.id for section in form.sections for field in section.fields]
    if unknown := next((name for name in about.disclosure if name not in ids), None):
        raise section.error(
            ("disclosure", unknown), f"expected a field of the form, got {unknown!r}{did_you_mean(unknown, ids)}"
        )
    material, answers = _Material(facts, about, counted, form), []
    for item in form.sections:
        for field in item.fields:
            result = ANSWERS[field.answer](material) if field.answer else FormAnswer()
            result.id, result.section, result.field = field.id, item.section, field.field
            result.source = field.source or form.source
            if text := about.disclosure.get(field.id):
                result.text, result.totals, result.origin = text, {}, "about"
            answers.append(result)
    blank = [answer.id for answer in answers if not answer.origin]
    return Disclosure(
        title=form.title, source=form.source, date=form.date, suffixes=counted.suffixes, answers=answers, blank=blank
    )


# --- files ------------------------------------------------------------------------------------------------------------


def load(root: str) -> Disclosure | None:
    """Return the disclosure in a folder; None if there is none.

    Raises:
        DataError: If the file is another.
    """
    return json_files.load_strictly(join(root, NAME), Disclosure, "move it away")


def to_bytes(disclosure: Disclosure) -> bytes:
    """Return the bytes of the file."""
    return msgspec.json.format(msgspec.json.encode(disclosure), indent=2) + b"\n"


def changes(old: Disclosure, new: Disclosure) -> list[Change]:
    """Return the differences by field, in the order of the new form."""
    left, right = _parts(old), _parts(new)
    return [
        Change(id=id, part=part, before=left.get((id, part)), after=right.get((id, part)))
        for id, part in dict.fromkeys([*right, *left])
        if left.get((id, part)) != right.get((id, part))
    ]


def _parts(disclosure: Disclosure) -> dict[tuple[str, str], Any]:
    results: dict[tuple[str, str], Any] = {}
    for answer in disclosure.answers:
        results[answer.id, "text"] = answer.text
        results |= {(answer.id, name): number for name, number in answer.totals.items()}
        for row in answer.rows:
            name, *cells = row.items()
            place = (answer.id, f"{name[0]} {name[1]}")
            results[place] = [*results.get(place, ()), dict(cells)]
    return {key: value for key, value in results.items() if value != ""}


def page(disclosure: Disclosure, level: int = 1) -> str:
    """Return the disclosure as Markdown, below level 1 without its title."""
    marks, section = "#" * (level + 1), ""
    parts = [f"# {disclosure.title}"] if level == 1 else []
    parts += [disclosure.notice, f"Fields of the form: {disclosure.source}; read on {disclosure.date}."]
    for answer in disclosure.answers:
        if answer.section != section:
            section = answer.section
            parts.append(f"{marks} {section}")
        lines = [without_html(line) for line in answer.text.splitlines()]
        parts.append(f"**{without_html(answer.field)}**" + ("" if answer.origin else " *(blank)*"))
        parts.append("\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines))
        if answer.rows:
            head = list(answer.rows[0])
            left = sum(not isinstance(cell, int) for cell in answer.rows[0].values())
            parts.append(markdown([head, *([_cell(row[name]) for name in head] for row in answer.rows)], left))
    blank = [f"- `{answer.id}`: {without_html(answer.field)}" for answer in disclosure.answers if not answer.origin]
    parts += [f"{marks} Blank", "\n".join(blank) or "Nothing."]
    return "\n\n".join(filter(None, parts)) + "\n"


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else code(value)
