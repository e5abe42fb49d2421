"""Query documents, attributes and outputs in SQL."""

import os
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from toolkit.command_line import Flag, Limited, Words
from toolkit.config.sizes import Size
from toolkit.errors import ConfigError
from toolkit.result import CommandResult
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome
from toolkit.storage.outputs import NamedOutput

MEMORY = "2 GB"
"""What DuckDB may take, unless `--memory` says otherwise."""

ROWS = 40
"""Rows of a table that are shown."""


class QueryResult(CommandResult, kw_only=True):
    """The result of a query: the name and the type of each column, and the rows as JSON."""

    columns: list[dict[str, str]]
    rows: list[msgspec.Raw]


class Options(Limited, frozen=True, kw_only=True):
    """Options of ``toolkit sql``.

    Raises:
        ConfigError: for options that do not go together.
    """

    EXAMPLES: ClassVar = (
        "toolkit sql 'SELECT language.label, count(*) FROM joined GROUP BY ALL' -c configs/quickstart.yaml",
        "toolkit sql 'SELECT label, sum(chars) FROM output GROUP BY ALL' data/quickstart/oscar",
    )

    config: Annotated[
        str | None, Flag("the configuration (YAML), if you give no path", "-c", "--config", metavar="FILE")
    ] = None
    targets: Annotated[
        tuple[str, ...],
        Words("a query; then a dataset, an output or both; settings, which override those of the file", "SQL | PATH"),
    ] = ()
    shell: Annotated[
        bool, Flag("start a shell for queries, typed or through a pipe; each query ends with a semicolon")
    ] = False
    format: Annotated[
        Literal["table", "csv", "json", "jsonl", "markdown", "parquet"] | None,
        Flag("the format of the result (table; with --output, the ending of the file name decides)"),
    ] = None
    output: Annotated[str | None, Flag("write the whole result to this file", metavar="FILE")] = None
    rows: Annotated[int, Flag(f"how many rows of a table to show ({ROWS})", metavar="N")] = ROWS
    memory: Annotated[
        str, Flag(f"how much memory queries may use ({MEMORY}); larger ones use temporary files", metavar="SIZE")
    ] = MEMORY
    formulas: Annotated[bool, Flag("in CSV, do not change texts that a spreadsheet would run as formulas")] = False

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
        """Return the paths that are queried, if it is not the configuration."""
        return self.targets if self.shell else self.targets[1:]


def run(context: Context, options: Options) -> Outcome:
    """Show the result of a query, or write it; or answer queries until their end.

    Nothing of the dataset is written but row indexes that are not there yet.
    """
    from toolkit.sql import check_installed

    check_installed()
    from toolkit.commands._catalog import catalog_of
    from toolkit.sql import printing
    from toolkit.sql.session import Database, aliases_of

    form = printing.format_of(options.output, options.format)
    output = NamedOutput(options.output, "--output") if options.output else None
    catalog = catalog_of(context, options.paths)
    names = list(catalog.makers)
    with Database(
        catalog.makers,
        aliases_of(names),
        catalog.faults,
        memory=_size(options.memory),
        threads=context.cores,
    ) as session:
        if options.shell:
            failed = printing.run(session, options.rows)
            return Outcome(exit_code=1 if failed else 0)
        query = options.targets[0]
        if options.json:
            return Outcome(data=_data(session.execute(query)))
        if form == "table" and options.output is None:
            return Outcome(text=printing.shown(session, query, options.rows))
        if form == "table":
            raise ConfigError(
                "--format table: expected no --output, because such tables are for the terminal; use --format markdown"
            )
        return Outcome(text=printing.write(session, query, form, output, formulas=options.formulas))


def _data(result: Any) -> QueryResult:
    from toolkit.sql.printing import objects

    rows = [msgspec.Raw(row) for row in objects(result.columns, result.rows())]
    return QueryResult(columns=[{"name": each.name, "type": each.type} for each in result.columns], rows=rows)


def _size(text: str) -> int:
    try:
        return Size.parse(text)
    except ValueError as error:
        raise ConfigError(f"--memory: {error}") from None
