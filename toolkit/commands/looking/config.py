"""Check a configuration and print it with overrides, variables and defaults, or print the JSON Schema for editors."""

from typing import Annotated, ClassVar

from toolkit.commands import judging
from toolkit.commands.command_line.options import Flag, Words
from toolkit.commands.command_line.options import Options as CommonOptions
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.commands.steps.showing import show_settings
from toolkit.errors import ConfigError


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit config``."""

    EXAMPLES: ClassVar = ("toolkit config -c my.yaml processes=4", "toolkit config --schema > toolkit.schema.json")

    config: Annotated[str | None, Flag("configuration (YAML)", "-c", "--config", metavar="FILE")] = None
    overrides: Annotated[tuple[str, ...], Words("settings that override the file's", "KEY=VALUE")] = ()
    schema: Annotated[bool, Flag("print the JSON Schema (draft 2020-12), with all installed plugins")] = False

    def __post_init__(self) -> None:
        """Raise ConfigError unless one of the two is asked for."""
        if self.schema == (self.config is not None) or (self.schema and self.overrides):
            raise ConfigError("expected either a configuration (-c FILE), or --schema alone")


def run(context: Context, options: Options) -> Outcome:
    """Print the settings as a command would have them, or the schema.

    Raises:
        ConfigError: with everything that is wrong with the settings, as far as it can be told without data.
    """
    if options.schema:
        return _schema()
    if context.is_dolma:
        raise ConfigError(f"{options.config}: expected a configuration of this toolkit, got one of Dolma's")
    shown = show_settings(context)
    shown.text = shown.text.rstrip("\n")
    if found := judging.faults(context):
        raise ConfigError("\n".join(found))
    return shown


def _schema() -> Outcome:
    import msgspec

    from toolkit.inspect.yaml_schema.sections import whole

    found = whole()
    return Outcome(text=msgspec.json.format(msgspec.json.encode(found)).decode(), data=found, for_programs=True)
