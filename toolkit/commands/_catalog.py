"""The views that queries can name: documents, each set, what a mix joins, and the parts of an output."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import msgspec

from toolkit.commands import _sections as sections
from toolkit.data.dataset import open_dataset
from toolkit.errors import ConfigError
from toolkit.inspect import targets
from toolkit.mix import publish
from toolkit.mix.settings import Stream
from toolkit.source import Source
from toolkit.sql import views
from toolkit.sql.streams import Faults
from toolkit.sql.views import Reading, View
from toolkit.stages.context import Context

DOCUMENTS, JOINED, OUTPUT = "documents", "joined", "output"
"""Names of views; all others are called as sets."""


@dataclass
class Catalog:
    """The views there are.

    Attributes:
        makers: what makes each, by name.
        faults: that all of them have.
    """

    makers: dict[str, Callable[[], View]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def add(self, name: str, make: Callable[[], View]) -> None:
        """Add a view.

        Raises:
            ConfigError: if another one has its name.
        """
        if name.casefold() in map(str.casefold, self.makers):
            raise ConfigError(
                f"expected views of different names, got two that are called {name!r}; query one dataset or output "
                "at a time"
            )
        self.makers[name] = make

    def add_set(self, prefix: str, name: str, make: Callable[[], View]) -> None:
        """Add the view of a set; underscores follow its name where another view has it, or may have it."""
        taken = {*map(str.casefold, self.makers), OUTPUT}
        name = prefix + name
        while name.casefold() in taken:
            name += "_"
        self.makers[name] = make


def catalog_of(context: Context, paths: Sequence[str]) -> Catalog:
    """Return the views of paths; without any, those of the configuration.

    Raises:
        ConfigError: if there is nothing that can be queried.
    """
    found = Catalog()
    for path in paths:
        target = targets.expected(path.rstrip("/") or path)
        if target.kind == "dataset":
            _add_stream(context, found, Stream.over(open_dataset(target.path, None, None)), "", sets=None)
        else:
            found.add(OUTPUT, partial(_of_parts, context, found, target))
    if not paths:
        _add_configured(context, found)
    return found


def _add_configured(context: Context, found: Catalog) -> None:
    if not context.has("mix"):
        _add_stream(context, found, Stream.over(context.dataset), "", sets=None)
        return
    mix = sections.mix(context)
    for stream in mix.streams:
        sets = [joined.set for joined in stream.attributes]
        _add_stream(context, found, stream, f"{stream.name}_" if stream.name else "", sets=sets)
    if publish.load_manifest(mix.output.path) is not None:
        found.add(OUTPUT, lambda: _of_parts(context, found, targets.expected(mix.output.path)))


def _add_stream(context: Context, found: Catalog, stream: Stream, prefix: str, sets: list[str] | None) -> None:
    """Add the views of a dataset; `joined` has the sets of the mix, or all there are."""
    there = stream.dataset.sets()
    reading = _Reading(context, stream, found.faults)
    found.add(prefix + DOCUMENTS, lambda: views.of_documents(reading.reading))
    found.add(prefix + JOINED, partial(_joined, reading, stream if sets else Stream.over(stream.dataset, there, "sql")))
    for name in there:
        found.add_set(prefix, name, partial(_set, reading, Stream.over(stream.dataset, [name], "sql")))


class _Reading:
    """The shards of a dataset, listed when the first view of it is made."""

    def __init__(self, context: Context, stream: Stream, faults: Faults) -> None:
        self._context, self._dataset, self._faults = context, stream.dataset, faults

    @cached_property
    def _source(self) -> Source:
        shards = self._context.limited(self._context.shards(self._dataset)[0])
        return self._context.source_of(self._dataset, shards)

    @cached_property
    def reading(self) -> Reading:
        works = self._source.typed(Stream.over(self._dataset)).joined(self._context.config.max_document_bytes)
        return Reading(works, self._context.session, self._faults)

    def sets(self, stream: Stream) -> Any:
        return self._source.resolve(stream, check="warn").refuse_unreadable().sets


def _joined(reading: _Reading, stream: Stream) -> View:
    return views.of_joined(reading.reading, reading.sets(stream))


def _set(reading: _Reading, stream: Stream) -> View:
    (joined,) = reading.sets(stream)
    return views.of_set(reading.reading, joined)


def _of_parts(context: Context, found: Catalog, target: targets.Target) -> View:
    """Return the view of an output, or of files of others."""
    limit = 2 * context.config.max_document_bytes
    listed = views.parts_of(target, limit)
    if context.options.limit is not None:
        listed = msgspec.structs.replace(listed, files=listed.files[: context.options.limit])
    return views.of_parts(listed, found.faults, context.session)
