"""Query documents, attributes and outputs in SQL."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

import msgspec

from toolkit.command_options import CommandResult, Flag, Limited, Words
from toolkit.commands import _sections as sections
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.distribution import require_extra
from toolkit.errors import ConfigError, errors_from
from toolkit.inspect import targets
from toolkit.mix import publication
from toolkit.mix.join import JoinedSet, JoinedShard
from toolkit.mix.settings import Stream
from toolkit.source import Source
from toolkit.sql import streams, views
from toolkit.stages.context import Context, Outcome
from toolkit.storage.outputs import NamedOutput
from toolkit.storage_options import Size

MEMORY = "2 GB"
"""Memory of DuckDB, unless `--memory` says otherwise."""

ROWS = 40
"""Rows of a table that are shown."""


class QueryResult(CommandResult, kw_only=True):
    """The result of a query: the name and the type of each column, and the rows as JSON."""

    columns: list[dict[str, str]]
    rows: list[msgspec.Raw]


class Options(Limited, frozen=True, kw_only=True):
    """Options of ``toolkit sql``.

    Attributes:
        config: the configuration (YAML), if you give no path
        targets: a query; then a dataset, an output or both; settings, which override those of the file
        shell: start a shell for queries, typed or through a pipe; each query ends with a semicolon
        format: the format of the result (table; with --output, the ending of the file name decides)
        output: write the whole result to this file
        rows: number of rows of a table to show (40)
        memory: memory that queries may use (2 GB); larger ones use temporary files
        formulas: do not change texts that a spreadsheet would run as formulas, in CSV

    Raises:
        ConfigError: for options that do not go together.
    """

    EXAMPLES: ClassVar = (
        "toolkit sql 'SELECT language.label, count(*) FROM joined GROUP BY ALL' -c configs/quickstart.yaml",
        "toolkit sql 'SELECT label, sum(chars) FROM output GROUP BY ALL' data/quickstart/oscar",
    )

    config: Annotated[str | None, Flag("-c", "--config", metavar="FILE")] = None
    targets: Annotated[tuple[str, ...], Words("SQL | PATH")] = ()
    shell: Annotated[bool, Flag()] = False
    format: Annotated[Literal["table", "csv", "json", "jsonl", "markdown", "parquet"] | None, Flag()] = None
    output: Annotated[str | None, Flag(metavar="FILE")] = None
    rows: Annotated[int, Flag(metavar="N")] = ROWS
    memory: Annotated[str, Flag(metavar="SIZE")] = MEMORY
    formulas: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        if not self.shell and not self.targets:
            raise ConfigError("expected a query, or --shell")
        if self.shell and (self.output or self.format or self.json):
            raise ConfigError("expected --shell without --output, --format and --json")
        if not self.shell and os.path.exists(self.targets[0]):
            raise ConfigError(f"expected a query before the path {self.targets[0]}, or --shell")
        if self.json and (self.output or self.format):
            raise ConfigError("expected --json without --output and --format")
        if not self.paths and self.config is None:
            raise ConfigError("expected a configuration (-c FILE), or a dataset or an output after the query")

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths to query; none for the configuration."""
        return self.targets if self.shell else self.targets[1:]


def run(context: Context, options: Options) -> Outcome:
    """Show the result of a query, or write it; or answer queries until their end.

    Nothing of the dataset is written but row indexes that are not there yet.
    """
    require_extra("sql", "queries in SQL", "pyarrow")
    from toolkit.sql import printing
    from toolkit.sql.session import Database

    form = printing.format_of(options.output, options.format)
    output = NamedOutput(options.output, "--output") if options.output else None
    catalog = catalog_of(context, options.paths)
    with Database(catalog.makers, catalog.faults, memory=_size(options.memory), threads=context.cores) as session:
        if options.shell:
            failed = printing.run(session, options.rows)
            return Outcome(exit_code=1 if failed else 0)
        query = options.targets[0]
        if options.json:
            result = session.execute(query)
            rows = [msgspec.Raw(row) for row in printing.objects(result.columns, result.rows())]
            columns = [{"name": column.name, "type": column.type} for column in result.columns]
            return Outcome(data=QueryResult(columns=columns, rows=rows))
        if form == "table" and options.output is None:
            return Outcome(text=printing.result_table(session, query, options.rows))
        if form == "table":
            raise ConfigError(
                "--format table: expected no --output, because such tables are for the terminal; use --format markdown"
            )
        return Outcome(text=printing.write(session, query, form, output, formulas=options.formulas))


def _size(text: str) -> int:
    with errors_from("--memory", of=ValueError):
        return Size.parse(text)


# --- views ------------------------------------------------------------------------------------------------------------


DOCUMENTS, JOINED, OUTPUT = "documents", "joined", "output"
"""Names of views; all others are called as sets."""


class Catalog(msgspec.Struct):
    """The views there are.

    Attributes:
        makers: Makers of views, by name.
        faults: Faults that all of them have.
    """

    makers: dict[str, Callable[[], views.View]] = {}
    faults: streams.Faults = msgspec.field(default_factory=streams.Faults)

    def add(self, name: str, make: Callable[[], views.View]) -> None:
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

    def add_set(self, prefix: str, name: str, make: Callable[[], views.View]) -> None:
        """Add the view of a set; underscores follow its name where another view has it, or may have it."""
        names = {*map(str.casefold, self.makers), OUTPUT}
        name = prefix + name
        while name.casefold() in names:
            name += "_"
        self.makers[name] = make


def catalog_of(context: Context, paths: Sequence[str]) -> Catalog:
    """Return the views of paths; without any, those of the configuration.

    Raises:
        ConfigError: if there is nothing that can be queried.
    """
    catalog = Catalog()
    for path in paths:
        target = targets.expected(path.rstrip("/") or path)
        if target.kind == "dataset":
            _add_stream(context, catalog, Stream.over(open_dataset(target.path, None, None)), "", sets=None)
        else:
            catalog.add(OUTPUT, partial(_of_parts, context, catalog, target))
    if not paths:
        _add_configured(context, catalog)
    return catalog


def _add_configured(context: Context, catalog: Catalog) -> None:
    if not context.has("mix"):
        _add_stream(context, catalog, Stream.over(context.dataset), "", sets=None)
        return
    mix = sections.mix(context)
    for stream in mix.streams:
        sets = [joined.set for joined in stream.attributes]
        _add_stream(context, catalog, stream, f"{stream.name}_" if stream.name else "", sets=sets)
    if publication.load_manifest(mix.output.path) is not None:
        catalog.add(OUTPUT, lambda: _of_parts(context, catalog, targets.expected(mix.output.path)))


def _add_stream(context: Context, catalog: Catalog, stream: Stream, prefix: str, sets: list[str] | None) -> None:
    """Add the views of a dataset; `joined` has the sets of the mix, or all there are."""
    set_names = stream.dataset.sets()
    reading = _Reading(context, stream.dataset, catalog.faults)
    joined = stream if sets else Stream.over(stream.dataset, set_names, "sql")
    catalog.add(prefix + DOCUMENTS, lambda: views.of_documents(reading))
    catalog.add(prefix + JOINED, lambda: views.of_joined(reading, reading.sets(joined)))
    for name in set_names:
        catalog.add_set(prefix, name, partial(_set, reading, Stream.over(stream.dataset, [name], "sql")))


class _Reading:
    """The shards of a dataset (a `toolkit.sql.views.Reading`), listed on demand."""

    def __init__(self, context: Context, dataset: Dataset, faults: streams.Faults) -> None:
        self._context, self._dataset, self.faults = context, dataset, faults
        self.session = context.session

    @cached_property
    def _source(self) -> Source:
        shards = self._context.shards(self._dataset)[0]
        return self._context.source_of(self._dataset, shards)

    @cached_property
    def works(self) -> Sequence[JoinedShard]:
        return self._source.typed(Stream.over(self._dataset)).joined(self._context.config.max_document_bytes)

    def sets(self, stream: Stream) -> Sequence[JoinedSet]:
        return self._source.resolve(stream, check="warn").refuse_unreadable().sets


def _set(reading: _Reading, stream: Stream) -> views.View:
    (joined,) = reading.sets(stream)
    return views.of_set(reading, joined)


def _of_parts(context: Context, catalog: Catalog, target: targets.Target) -> views.View:
    """Return the view of an output, or of external files."""
    limit = 2 * context.config.max_document_bytes
    listed = views.parts_of(target, limit)
    if context.options.limit is not None:
        listed = msgspec.structs.replace(listed, files=listed.files[: context.options.limit])
    return views.of_parts(listed, catalog.faults, context.session)
