"""A rule as data: what was written, ready to be sent to a worker, recorded, and compiled there."""

import math
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.schema import ANY, NEVER, Type, infer, list_of, union

Kind = Literal["drop", "keep", "blocklist", "sample", "annotate", "set", "route", "replace", "cut", "cut lines"]
Syntax = Literal["", "jsonpath", "jq"]
Entries = Literal["any", "ids", "hosts", "urls"]

DROPPING = ("drop", "keep", "blocklist", "sample")
"""The kinds of rules that drop documents."""

MANY_LABELS = 200
"""Labels of a parameter above which its values are recorded by their digest."""

EDITING = ("replace", "cut", "cut lines")
"""The kinds of rules that change text."""


class Rule(ConfigStruct):
    """A rule as written, with what the groups around it add.

    Attributes:
        kind: what it does.
        name: under which it is counted and shown; that of its group, and ``: ``, in front.
        group: the innermost group that it is in.
        expression: when it does it; of an edit the spans, or the condition for lines; of others the value.
        patterns: of a drop or keep in another language than ours: it is about documents that match any.
        syntax: of the patterns, or of a selector of spans, if it is another language than ours.
        strict: whether numbers are compared as Dolma does, 1 unequal to 1.0.
        when: a further condition on documents.
        annotation: what an `annotate` rule adds to the document's annotations.
        field: of the metadata, dotted, that a `set` rule gives a value.
        by: what `replace` puts in the place of spans; with a `syntax`, if it begins with ``$``, a jq filter behind it.
        share: of the documents that a sample leaves.
        shares: the same for some labels.
        seed: of a sample.
        min_score, max_score: of spans that are edited, the first included, the second not.
        files: of a blocklist, each with the digest of its content.
        entries: what the lines of a blocklist are.
        url: where documents have their URL, for blocklists: a dotted path.
        parameters: names that the expressions use: value by label, and for all other labels under "".
        place: file and line, for messages.
    """

    kind: Kind
    name: str
    group: str = ""
    expression: str = ""
    patterns: list[str] = []
    syntax: Syntax = ""
    strict: bool = False
    when: str = ""
    annotation: str = ""
    field: str = ""
    by: str = ""
    share: float | None = None
    shares: dict[str, float] = {}
    seed: str = ""
    min_score: float | None = None
    max_score: float | None = None
    files: dict[str, str] = {}
    entries: Entries = "any"
    url: str = ""
    parameters: dict[str, dict[str, Any]] = {}
    place: str = ""

    @property
    def edits(self) -> bool:
        """Whether it changes text."""
        return self.kind in EDITING

    @property
    def drops(self) -> bool:
        """Whether it can drop a document."""
        return self.kind in DROPPING

    @property
    def may_differ(self) -> bool:
        """Whether it has patterns that Dolma may understand otherwise: 1 and 1.0 are two numbers to its JSONPath."""
        return self.syntax == "jsonpath" and bool(self.patterns) and not self.strict

    @property
    def decides(self) -> bool:
        """Whether it drops or annotates documents; all others are applied to those that stay."""
        return self.drops or self.kind == "annotate"


def settings(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """The rules as they are recorded: without the places where they, and the files that they name, are."""
    listed = []
    for rule in rules:
        given = {
            key: value
            for key, value in msgspec.to_builtins(rule).items()
            if value is not False and value not in (None, "", {}, [])  # zero is something
        }
        given.pop("place", None)
        if rule.parameters:
            given["parameters"] = {name: _recorded(values) for name, values in rule.parameters.items()}
        given["files"] = list(rule.files.values())
        if not rule.files:
            del given["files"], given["entries"]
        listed.append(given)
    return listed


def _recorded(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a parameter as they are recorded: a table of many languages by its digest."""
    if len(values) <= MANY_LABELS:
        return values
    digest = xxhash.xxh3_128_hexdigest(msgspec.json.encode(values, order="sorted"))
    return {label: values[label] for label in ("",) if label in values} | {"labels": len(values), "xxh3_128": digest}


def parameter_type(*values: Any) -> Type:
    """The type of a parameter that has these values: of numbers, texts, booleans, or lists of such; else any."""
    found = NEVER
    for value in values:
        if isinstance(value, list):  # three integers are no span here
            item = parameter_type(*value)
            type_ = ANY if item == ANY or item.kind == "list" else list_of(item)
        elif isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            type_ = infer(value)
        else:
            return ANY
        found = union(found, type_)
        if ANY in (found, found.item):
            return ANY
    return found


def sample_hash(seed: str, source: str, id: str) -> int:
    """xxh3-64 of seed, source and id, joined by NUL bytes; a document stays in a sample of p below p x 2^64."""
    return xxhash.xxh3_64_intdigest(f"{seed}\0{source}\0{id}".encode())
