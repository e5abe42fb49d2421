"""What a run was made with: inputs, stages, sets, models, versions."""

from typing import Any

import msgspec


class Named(msgspec.Struct, kw_only=True):
    """Something with its version: a package, a tagger."""

    name: str
    version: str


class Model(msgspec.Struct, kw_only=True):
    """A model file."""

    name: str
    sha256: str


class SetMade(msgspec.Struct, kw_only=True):
    """An attribute set that is joined, and how it was made.

    Attributes:
        set, stream: by name; the stream is empty if the mix has one.
        keys: name of the attribute, and its declared type.
        settings: of its taggers, by key; empty for sets of others.
    """

    set: str
    stream: str = ""
    keys: dict[str, str] = {}
    settings: dict[str, Any] = {}


class Input(msgspec.Struct, kw_only=True):
    """What came in, of one entry of ``ingest:`` or one source.

    Attributes:
        source: of the documents.
        inputs: files.
        documents: that were made.
        bytes: of the inputs, as stored.
        rejected: items that were left out, by reason.
    """

    source: str
    inputs: int = 0
    documents: int = 0
    bytes: int = 0
    rejected: dict[str, int] = {}


class Stage(msgspec.Struct, kw_only=True):
    """The work of a stage, added up over its shards.

    Attributes:
        stage: ``ingest``, ``tag``, ``mix`` …
        set: that it made, if it makes sets.
        documents: that went through.
        bytes: of their texts, uncompressed, or of the documents that ingest has written; null where that is not noted.
        seconds: of work, of all processes together.
    """

    stage: str
    set: str = ""
    documents: int
    bytes: int | None = None
    seconds: float
