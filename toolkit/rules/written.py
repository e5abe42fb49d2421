"""A rule as it is written and recorded: what kinds of rules have in common, before one is checked and compiled."""

import enum
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.plugins import snake_case
from toolkit.rules.filters import Syntax
from toolkit.storage.json_files import json_digest

MANY_LABELS = 200
"""Labels of a parameter above which its values are recorded by their digest."""

_FIRST = ("kind", "name", "group", "expression", "patterns", "syntax", "strict", "when")
"""The order in which the keys of a record begin. Digests of mixes depend on it."""


class Role(enum.Enum):
    """The things that rules can do to a document, with the verb for a rule and the participle for a report."""

    DROPS = ("drops", "dropped")
    REPEATS = ("repeats", "dropped")
    ANNOTATES = ("annotates", "annotated")
    EDITS = ("edits", "changed")
    SETS = ("sets", "gave a field to")
    ROUTES = ("routes", "routed")

    @property
    def verb(self) -> str:
        """Return the word for one rule: ``drops``."""
        return str(self.value[0])

    @property
    def done(self) -> str:
        """Return what comes before a number of documents: ``dropped``."""
        return str(self.value[1])

    @property
    def drops(self) -> bool:
        """Return whether a rule can drop a document."""
        return self in (Role.DROPS, Role.REPEATS)


class Foreign(NamedTuple):
    """The texts of a rule in another language than that of our expressions.

    Attributes:
        syntax: the language.
        texts: patterns, or selectors of spans.
        match: True for patterns, which match documents.
        keeps: the rule drops the documents that no pattern matches.
        strict: numbers are compared as Dolma does, 1 unequal to 1.0.
    """

    syntax: Syntax
    texts: Sequence[str]
    match: bool = False
    keeps: bool = False
    strict: bool = False


class Written(ConfigStruct, kw_only=True, tag_field="kind", tag=lambda name: snake_case(name).replace("_", " ")):
    """A rule as written, with what the groups around it add.

    Attributes:
        name: under which it is counted and shown; that of its group, and ``: ``, in front.
        group: the innermost group that it is in.
        expression: of the condition or the value that the kind is about, if it has one.
        when: a further condition on documents.
        parameters: names that the expressions use: value by label, and for all other labels under "".
        place: file and line, for messages.
    """

    name: str
    group: str = ""
    expression: str = ""
    when: str = ""
    parameters: dict[str, dict[str, Any]] = {}
    place: str = ""

    ROLE: ClassVar[Role] = Role.EDITS
    """The thing that rules of the kind do. Those that drop or annotate come first, others for documents that stay."""

    DRAWS: ClassVar[bool] = False
    """It drops documents by a draw, whatever they are copies of."""

    KEEPS: ClassVar[bool] = False
    """It drops the documents for which its expression, or patterns, are not true."""

    READS_ALL: ClassVar[bool] = False
    """It may read all attributes and the text."""

    SIZE_NEEDS_TEXT: ClassVar[bool] = False
    """Only the text tells how many characters an edit changes, so a dry run does not know."""

    @property
    def expressions(self) -> list[str]:
        """Return the texts that are expressions of ours; the condition `when` is the last of them."""
        return [text for text in ("" if self.foreign else self.expression, self.when) if text]

    @property
    def foreign(self) -> Foreign | None:
        """Return the texts in another language, if there are any."""
        return None

    @property
    def annotation(self) -> str:
        """Return what the rule adds to the annotations of a document, if that is its role."""
        return ""

    @property
    def field(self) -> str:
        """Return the field of the metadata that the rule gives, dotted, if that is its role."""
        return ""

    def recorded(self) -> dict[str, Any]:
        """Return the rule as it is recorded: without the places where it, and the files that it names, are."""
        given = {
            key: value
            for key, value in msgspec.to_builtins(self).items()
            if value is not False and value not in (None, "", {}, [])  # zero is something
        }
        given.pop("place", None)
        parameters = {name: _recorded(values) for name, values in given.pop("parameters", {}).items()}
        first = {key: given.pop(key) for key in _FIRST if key in given}
        return first | given | ({"parameters": parameters} if parameters else {})

    @property
    def kind(self) -> str:
        """Return what the kind is called in records and tables."""
        return str(self.__struct_config__.tag)

    @property
    def drops(self) -> bool:
        """Return whether it can drop a document."""
        return self.ROLE.drops

    @property
    def edits(self) -> bool:
        """Return whether it changes text."""
        return self.ROLE is Role.EDITS

    @property
    def decides(self) -> bool:
        """Return whether it drops or annotates documents; all others are applied to those that stay."""
        return self.drops or self.ROLE is Role.ANNOTATES


def _recorded(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a parameter as they are recorded: a table of many languages by its digest."""
    if len(values) <= MANY_LABELS:
        return values
    digest = json_digest(values)
    return {label: values[label] for label in ("",) if label in values} | {"labels": len(values), "xxh3_128": digest}
