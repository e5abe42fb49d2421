"""The contract of a rule kind. A kind is one file of `toolkit.rules.kinds`; nothing else names it.

The file has three classes:

- a `Form`, which is what stands in YAML, with its options and their types, and makes rules of it
- a `Rule`, whose name is that of the file: what is sent to a worker, recorded, and compiled there
- if the kind does more than drop or annotate documents, a `toolkit.rules.compiled.CompiledRule`: what the rule does to
  a document, and how that is explained
"""

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct, Description, Source
from toolkit.data.schema import ANY, NEVER, Type, infer, list_of, union
from toolkit.plugins import snake_case
from toolkit.rules.filters import Syntax

if TYPE_CHECKING:
    from toolkit.rules.compiled import CompiledRule
    from toolkit.rules.compiling import Compiler

MANY_LABELS = 200
"""Labels of a parameter above which its values are recorded by their digest."""

_FIRST = ("kind", "name", "group", "expression", "patterns", "syntax", "strict", "when")
"""The order in which the keys of a record begin. Digests of mixes depend on it."""


class Role(enum.Enum):
    """The things that rules can do to a document, with the verb for a rule and the participle for a report."""

    DROPS = ("drops", "dropped")
    ANNOTATES = ("annotates", "annotated")
    EDITS = ("edits", "changed")
    SETS = ("sets", "gave a field to")
    ROUTES = ("routes", "routed")

    @property
    def verb(self) -> str:
        """Return the word for one rule: ``drops``."""
        return self.value[0]

    @property
    def done(self) -> str:
        """Return what comes before a number of documents: ``dropped``."""
        return self.value[1]


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


class Rule(ConfigStruct, kw_only=True, tag_field="kind", tag=lambda name: snake_case(name).replace("_", " ")):
    """A rule as written, with what the groups around it add: extend it.

    Attributes:
        name: under which it is counted and shown; that of its group, and ``: ``, in front.
        group: the innermost group that it is in.
        when: a further condition on documents.
        parameters: names that the expressions use: value by label, and for all other labels under "".
        place: file and line, for messages.
    """

    name: str
    group: str = ""
    when: str = ""
    parameters: dict[str, dict[str, Any]] = {}
    place: str = ""

    FORM: ClassVar[type["Form"]]
    """The form in which the kind is written."""

    ROLE: ClassVar[Role] = Role.EDITS
    """The thing that rules of the kind do. Those that drop or annotate come first, others for documents that stay."""

    SIZE_NEEDS_TEXT: ClassVar[bool] = False
    """Only the text tells how many characters an edit changes, so a dry run does not know."""

    def compile(self, compiler: "Compiler") -> "CompiledRule":
        """Check the rule against the types of attributes, and make it ready to run.

        Args:
            compiler: knows the attributes, and notes what the rule reads.

        Raises:
            ConfigError: naming the place of a rule that cannot be used.
        """
        raise NotImplementedError(type(self).__name__)

    @property
    def expressions(self) -> list[str]:
        """Return the texts that are expressions of ours; the condition `when` is the last of them."""
        return [self.when] if self.when else []

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

    def strictly(self) -> Self:
        """Return the rule as Dolma understands it: 1 and 1.0 are two numbers to its JSONPath."""
        return self

    def doubts(self, compiler: "Compiler") -> list[str]:
        """Return the code of conditions, of which one holds for each document of which `strictly` decides otherwise."""
        return []

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
        return self.ROLE is Role.DROPS

    @property
    def edits(self) -> bool:
        """Return whether it changes text."""
        return self.ROLE is Role.EDITS

    @property
    def decides(self) -> bool:
        """Return whether it drops or annotates documents; all others are applied to those that stay."""
        return self.ROLE in (Role.DROPS, Role.ANNOTATES)


class Form(ConfigStruct, kw_only=True):
    """An entry of the list ``rules:`` as it stands in YAML: extend it with the options of a kind."""

    name: Annotated[str, Description(description="the name of the rule in reports")] = ""
    when: Annotated[str, Description(description="a further condition on documents")] = ""

    KEY: ClassVar[str]
    """The option by which an entry of the kind is known: ``drop``."""

    WORD: ClassVar[str] = ""
    """The word at this key where kinds share it: ``blocklist``; empty for the kind that takes everything else."""

    def rules(self, place: Source, base: str) -> Sequence[Rule]:
        """Return the rules that the entry stands for, without what surrounds them.

        Args:
            place: of the entry, for errors.
            base: folder that the paths of files are relative to.

        Raises:
            ConfigError: for what the types of the options do not tell.
        """
        raise NotImplementedError(type(self).__name__)


def _recorded(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a parameter as they are recorded: a table of many languages by its digest."""
    if len(values) <= MANY_LABELS:
        return values
    digest = xxhash.xxh3_128_hexdigest(msgspec.json.encode(values, order="sorted"))
    return {label: values[label] for label in ("",) if label in values} | {"labels": len(values), "xxh3_128": digest}


def parameter_type(*values: Any) -> Type:
    """Return the type of a parameter with these values: of numbers, texts, booleans, or lists of such; else any."""
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
    """Return xxh3-64 of seed, source and id, joined by NUL bytes; a document stays in a sample of p below p x 2^64."""
    return xxhash.xxh3_64_intdigest(f"{seed}\0{source}\0{id}".encode())
