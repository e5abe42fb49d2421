"""The contract of a rule kind. A kind is one file of `toolkit.rules.kinds`; nothing else names it.

The file has three classes:

- a `Form`, which is what stands in YAML, with its options and their types, and makes rules of it
- a `Rule`, whose name is that of the file: what is sent to a worker, recorded, and compiled there
- if the kind does more than drop or annotate documents, a `toolkit.rules.compiled_rule.CompiledRule`: what the rule
  does to a document, and how that is explained
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

import xxhash

from toolkit.config.settings import ConfigStruct, Description, Source
from toolkit.rules.compiled_rule import CompiledRule
from toolkit.rules.compiling import Compiler
from toolkit.rules.written import Written


class Rule(Written, kw_only=True):
    """A rule that can be compiled: extend it with what the kind has in YAML beside `Written`."""

    FORM: ClassVar[type["Form"] | None]
    """The form in which the kind is written; None if it stands in no list of rules."""

    def compile(self, compiler: Compiler) -> CompiledRule:
        """Check the rule against the types of attributes, and make it ready to run.

        Args:
            compiler: knows the attributes, and notes what the rule reads.

        Raises:
            ConfigError: naming the place of a rule that cannot be used.
        """
        raise NotImplementedError(type(self).__name__)

    def strictly(self) -> Self:
        """Return the rule as Dolma understands it: 1 and 1.0 are two numbers to its JSONPath."""
        return self

    def doubts(self, compiler: Compiler) -> list[str]:
        """Return the code of conditions, of which one holds for each document of which `strictly` decides otherwise."""
        return []


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


def sample_hash(seed: str, source: str, id: str, place: str = "") -> int:
    """Return xxh3-64 of seed, source and id, joined by NUL bytes; a document stays in a sample of p below p x 2^64.

    Where ids are not unique, the place of the document (`Document.place`) is hashed, too.
    """
    return xxhash.xxh3_64_intdigest(f"{seed}\0{source}\0{id}{place and chr(0) + place}".encode())


def document_hash(seed: str, document: Any) -> int:
    """Return the `sample_hash` of a document, or of a row that has its names."""
    return sample_hash(seed, document.source, document.id, getattr(document, "place", ""))
