"""A slow model of what mixes do: random documents, random rules, and what becomes of the ones under the others."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.pipeline.conftest import JsonRows, Project, attributes, document, read_rows, write_rows
from toolkit.rules.rule import sample_hash

PARAMETERS: dict[str, Any] = {"parameters": {"p": 6}, "languages": {"en": {"p": 2}, "de": {"p": 9}}}
LABEL = "lang.label"
EMPTY = "documents empty after edits"


@dataclass(frozen=True)
class Doc:
    """A document with its attributes."""

    id: str
    source: str
    text: str
    metadata: dict[str, Any] | None
    n: int | None
    label: str | None
    spans: list[list[float]]

    @property
    def key(self) -> tuple[str, str]:
        return (self.source, self.id)

    @property
    def row(self) -> dict[str, Any]:
        found = document(self.id, self.text, self.source)
        return found if self.metadata is None else found | {"metadata": self.metadata}

    @property
    def values(self) -> dict[str, Any]:
        return attributes(
            self.id, {"n": self.n, "lang": {"label": self.label, "prob": 0.5}, "sp": self.spans}, self.source
        )

    @property
    def url(self) -> str | None:
        return (self.metadata or {}).get("url")

    @property
    def p(self) -> int:
        return int({"en": 2, "de": 9}.get(self.label or "", 6))


def write(project: Project, docs: Iterable[Doc], root: Path | None = None, shards: int = 2) -> None:
    """Writes documents and their attributes, dealt to shards."""
    root, listed = root or project.data, list(docs)
    for number in range(shards):
        mine = listed[number::shards]
        write_rows(root / "documents" / f"{number}.jsonl.gz", [doc.row for doc in mine])
        write_rows(root / "attributes" / "exp" / f"{number}.jsonl.gz", [doc.values for doc in mine])


@st.composite
def docs(draw: st.DrawFn) -> list[Doc]:
    """Documents; the first two have all that is null in others, and the reverse."""
    found = [
        Doc("0", "s", "one two three", {"url": "http://h0.example/", "k": {"a": 1}}, 4, "en", [[0, 3, 1.0]]),
        Doc("0", "t", "x", None, None, None, [[0, 1, 0.2]]),
    ]
    for i in range(1, draw(st.integers(2, 14))):
        text = draw(st.sampled_from(["", "a", "two\nlines", "äöü and more", "x" * 40]))
        ends = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)))
        found.append(
            Doc(
                id=str(i),
                source=draw(st.sampled_from(["s", "t"])),
                text=text,
                metadata=draw(
                    st.sampled_from([None, {}, {"url": f"https://sub.h{i % 3}.example/{i}"}, {"k": {"b": 2}}])
                ),
                n=draw(st.none() | st.integers(0, 12)),
                label=draw(st.sampled_from(["en", "de", "x-1", None])),
                spans=[
                    [start, end, draw(st.sampled_from([0.25, 1.0]))]
                    for start, end in zip(ends[::2], ends[1::2], strict=False)
                ],
            )
        )
    return found


# --- rules ------------------------------------------------------------------------------------------------------------

Test = Callable[[Doc], bool]


def yes(_: Doc) -> bool:
    return True


@dataclass(frozen=True)
class Modelled:
    """A rule, and what it does to a document.

    Attributes:
        yaml: as written; rules of a group have theirs in the group.
        kind: ``drop``, or the key of the rule.
        holds: whether it does something to a document.
        value: what it sets, where it routes, what it annotates.
    """

    yaml: dict[str, Any]
    kind: str
    holds: Test = yes
    value: Callable[[Doc], Any] = yes
    name: str = ""


CONDITIONS: list[tuple[str, Test]] = [
    ("n is None", lambda d: d.n is None),
    ("n is not None and n % 3 == 0", lambda d: d.n is not None and d.n % 3 == 0),
    ("n is not None and n > p", lambda d: d.n is not None and d.n > d.p),
    ('label is not None and label == "en"', lambda d: d.label == "en"),
    ('lang.label in ["de", "x-1"] if lang.label is not None else False', lambda d: d.label in ("de", "x-1")),
    ("document.chars > 9", lambda d: len(d.text) > 9),
    ('document.source == "t"', lambda d: d.source == "t"),
    ('"url" in document.metadata', lambda d: d.url is not None),
    ("any(s.score > 0.5 for s in sp)", lambda d: any(s[2] > 0.5 for s in d.spans)),
    ("1 > 2", lambda d: False),
]


def _both(*tests: Test) -> Test:
    return lambda doc: all(test(doc) for test in tests)


def _opposite(test: Test) -> Test:
    return lambda doc: not test(doc)


@st.composite
def _dropping(draw: st.DrawFn) -> Modelled:
    (text, test), (when, around) = draw(st.sampled_from(CONDITIONS)), draw(st.sampled_from(CONDITIONS))
    kind = draw(st.sampled_from(["drop", "keep", "sample", "sample by label", "blocklist"]))
    yaml: dict[str, Any] = {} if draw(st.booleans()) else {"when": when}
    outer = around if yaml else yes
    if kind == "drop":
        return Modelled({"drop": text, **yaml}, "drop", _both(outer, test))
    if kind == "keep":
        return Modelled({"keep": text, **yaml}, "drop", _both(outer, _opposite(test)))
    if kind == "blocklist":
        return Modelled({"drop": "blocklist", "files": "list.txt", **yaml}, "drop", _both(outer, is_listed))
    seed, share = draw(st.integers(0, 2)), draw(st.sampled_from([0, 0.3, 0.8]))
    given: Any = share if kind == "sample" else {"en": share, "de": 1, "default": 0.5}
    shares = {} if kind == "sample" else {"en": share, "de": 1}

    def falls_out(doc: Doc) -> bool:
        limit = shares.get(doc.label or "", share if kind == "sample" else 0.5)
        return sample_hash(str(seed), doc.source, doc.id) >= limit * 2**64

    return Modelled({"sample": given, "seed": seed, **yaml}, "drop", _both(outer, falls_out))


LIST = ["# a comment", "", "s\t3", "4", '{"id": "5", "source": "t", "text": "whole"}', "h1.example", "nobody\r", "s\t3"]


def is_listed(doc: Doc) -> bool:
    return doc.key in (("s", "3"), ("t", "5")) or doc.id == "4" or "h1.example" in (doc.url or "")


@st.composite
def _staying(draw: st.DrawFn) -> Modelled:
    when, test = draw(st.sampled_from(CONDITIONS))
    kind = draw(st.sampled_from(["annotate", "set", "route"]))
    if kind == "annotate":
        name = draw(st.sampled_from(["a", "b"]))
        return Modelled({"annotate": name, "when": when}, kind, test, lambda _: name)
    if kind == "set":
        path = draw(st.sampled_from(["f", "k.a", "k.c.d"]))
        text, value = draw(
            st.sampled_from(
                [
                    ("document.id", lambda d: d.id),
                    ("document.chars", lambda d: len(d.text)),
                    ('["x", document.source]', lambda d: ["x", d.source]),
                    ("p + 1", lambda d: d.p + 1),
                ]
            )
        )
        return Modelled({"set": path, "to": text, "when": when}, kind, test, lambda d: (path.split("."), value(d)))
    text, value = draw(
        st.sampled_from(
            [
                ('"x"', lambda d: "x"),
                ('"x/" + label', lambda d: "x/documents"),
                ('"s/" + document.source if document.chars > 5 else label', folder),
                ("document.source", lambda d: d.source),
            ]
        )
    )
    return Modelled({"route": text, "when": when}, kind, test, value)


def folder(doc: Doc) -> str:
    return f"s/{doc.source}" if len(doc.text) > 5 else "documents"


@st.composite
def _editing(draw: st.DrawFn) -> Modelled:
    when, test = draw(st.sampled_from(CONDITIONS))
    edit: dict[str, Any] = draw(
        st.sampled_from([{"cut": "sp"}, {"replace": "sp", "by": "<{}>"}, {"replace": "sp", "by": ""}])
    )
    limit: dict[str, float] = draw(st.sampled_from([{}, {"min_score": 0.5}, {"max_score": 1}]))
    low, high = limit.get("min_score", 0.0), limit.get("max_score", 2.0)
    return Modelled(
        {**edit, **limit, "when": when},
        "edit",
        test,
        lambda d: (edit.get("by", ""), [s for s in d.spans if low <= s[2] < high and s[0] < s[1]]),
    )


@st.composite
def rules(draw: st.DrawFn, *, edits: bool = True) -> tuple[list[dict[str, Any]], list[Modelled]]:
    """Rules as a configuration has them, each under a name of its own, and as a flat list."""
    some = st.one_of(_dropping(), _dropping(), _staying(), *([_editing()] if edits else []))
    yaml: list[dict[str, Any]] = []
    flat: list[Modelled] = []
    for number in range(draw(st.integers(0, 5))):
        if draw(st.integers(0, 4)) == 0:
            when, test = draw(st.sampled_from(CONDITIONS))
            group: dict[str, Any] = {"group": f"g{number}", "when": when, "rules": []}
            for i, rule in enumerate(draw(st.lists(some, min_size=1, max_size=3))):
                name = f"{number}.{i}"
                group["rules"].append({**rule.yaml, "name": name})
                flat.append(Modelled(rule.yaml, rule.kind, _both(test, rule.holds), rule.value, f"g{number}: {name}"))
            yaml.append(group)
        else:
            rule = draw(some)
            yaml.append({**rule.yaml, "name": str(number)})
            flat.append(Modelled(rule.yaml, rule.kind, rule.holds, rule.value, str(number)))
    return yaml, flat


# --- what becomes of documents ----------------------------------------------------------------------------------------


@dataclass
class Expected:
    """What a mix should give.

    Attributes:
        output: rows by folder.
        rejected: names of rules, or reasons, by source and id.
        effects: documents, code points, documents that reached the rule, by name.
        only: documents that no other rule would drop.
    """

    output: dict[str, JsonRows] = field(default_factory=dict)
    rejected: dict[tuple[str, str], str] = field(default_factory=dict)
    effects: dict[str, list[int]] = field(default_factory=dict)
    only: dict[str, int] = field(default_factory=dict)


def expected(docs: Iterable[Doc], rules: list[Modelled]) -> Expected:
    """The model: document by document, rule by rule."""
    found = Expected(effects={rule.name: [0, 0, 0] for rule in rules})
    dropping = [rule for rule in rules if rule.kind == "drop"]
    found.only = {rule.name: 0 for rule in dropping}
    for doc in docs:
        dropped = next((rule for rule in dropping if rule.holds(doc)), None)
        for rule in rules:
            deciding = rule.kind in ("drop", "annotate")
            if dropped is None or (deciding and rules.index(rule) <= rules.index(dropped)):
                found.effects[rule.name][2] += 1
        if dropped:
            found.effects[dropped.name][0] += 1
            found.effects[dropped.name][1] += len(doc.text)
            found.rejected[doc.key] = dropped.name
            found.only[dropped.name] += sum(rule.holds(doc) for rule in dropping) == 1
            continue
        _keep(found, doc, rules)
    return found


def _keep(found: Expected, doc: Doc, rules: list[Modelled]) -> None:
    applied = [rule for rule in rules if rule.kind != "drop" and rule.holds(doc)]
    routes = [rule for rule in applied if rule.kind == "route"]
    for rule in applied:
        edited = rule.value(doc)[1] if rule.kind == "edit" else []
        if rule in routes[1:] or (rule.kind == "edit" and not edited):
            continue
        found.effects[rule.name][0] += 1
        found.effects[rule.name][1] += sum(s[1] - s[0] for s in edited) if rule.kind == "edit" else len(doc.text)
    text = _edited(doc, [rule for rule in applied if rule.kind == "edit"])
    if not text and text != doc.text:
        found.rejected[doc.key] = EMPTY
        return
    after = Doc(doc.id, doc.source, text, doc.metadata, doc.n, doc.label, doc.spans)
    metadata = json.loads(json.dumps(doc.metadata or {}))
    for rule in applied:
        if rule.kind == "set":
            (*path, last), value = rule.value(after)
            inside = metadata
            for key in path:
                inside = inside.setdefault(key, {})
            inside[last] = value
    if notes := list(dict.fromkeys(rule.value(doc) for rule in applied if rule.kind == "annotate")):
        metadata["annotation"] = notes
    row = document(doc.id, text, doc.source)
    if metadata or doc.metadata is not None:
        row["metadata"] = metadata
    found.output.setdefault(routes[0].value(doc) if routes else "documents", []).append(row)


def _edited(doc: Doc, edits: list[Modelled]) -> str:
    by: dict[tuple[float, ...], list[str]] = {}
    for rule in edits:
        replacement, spans = rule.value(doc)
        for span in spans:
            by.setdefault(tuple(span), []).append(replacement)
    text = doc.text
    for (start, end, _), replacements in sorted(by.items(), reverse=True):
        at, to = int(start), int(end)
        replacement = next((each for each in replacements if "{}" not in each), replacements[0])
        text = text[:at] + replacement.replace("{}", text[at:to]) + text[to:]
    return text


def folders(out: Path) -> dict[str, JsonRows]:
    """The rows of an output by folder."""
    parts = sorted((out / "documents").rglob("*.jsonl.gz"))
    return {str(path.relative_to(out / "documents")).removesuffix(".jsonl.gz"): read_rows(path) for path in parts}
