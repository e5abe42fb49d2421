"""Write a first configuration: a recipe that ships with the toolkit, or one for your files; alone, list the recipes."""

import os
import shlex
from typing import Annotated, ClassVar

from toolkit.commands.beginning import page
from toolkit.commands.command_line.options import Flag, Words
from toolkit.commands.command_line.options import Options as CommonOptions
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, table
from toolkit.config import recipes
from toolkit.errors import ConfigError
from toolkit.storage import store_of


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit init``."""

    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = (
        "toolkit init",
        "toolkit init fineweb -o my.yaml",
        "toolkit init --from news.csv",
        "toolkit init --from hub/fineweb -o my.yaml",
    )

    targets: Annotated[tuple[str, ...], Words("the name of a recipe", "RECIPE")] = ()
    path: Annotated[
        str | None,
        Flag("write a configuration for these files: a file, a folder, or a glob in quotes", "--from", metavar="PATH"),
    ] = None
    output: Annotated[
        str | None, Flag("the file to write; by default the name of recipe or data", "-o", "--output", metavar="FILE")
    ] = None


def run(context: Context, options: Options) -> Outcome:
    """Write a recipe, or a configuration for a path, to a file that is not there yet; or list the recipes."""
    if options.path is not None:
        return _for_path(options.path, options)
    if options.overrides:
        raise ConfigError(f"expected the name of a recipe, got {options.overrides[0]!r}; settings go to `toolkit run`")
    if not options.targets:
        if options.output is not None:
            raise ConfigError(f"expected the name of a recipe, too; there are: {', '.join(recipes.names())}")
        return _list()
    if len(options.targets) > 1:
        raise ConfigError(f"expected one recipe, got {len(options.targets)}: {', '.join(options.targets)}")
    name = options.targets[0].removeprefix(recipes.PREFIX).removesuffix(".yaml")
    path = options.output or f"{name}.yaml"
    return _write(path, recipes.text_of(name), "edit the values of `dataset:`, `from:` and `path:`, then")


def _for_path(given: str, options: Options) -> Outcome:
    if more := (*options.targets, *options.overrides):
        raise ConfigError(f"expected a path after `--from`, or a recipe, got both: {given} and {more[0]}")
    path = options.output or f"{page.name_of(given)}.yaml"
    _check_new(path)
    return _write(path, page.text_for(given, path), "it runs as it is:")


def _list() -> Outcome:
    found = {name: recipes.about(name) for name in recipes.names()}
    rows = [["recipe", "what it makes"], *([name, about] for name, about in found.items())]
    hint = "`toolkit init RECIPE` writes one to a file; `toolkit run -c recipe:RECIPE` runs it as it is."
    return Outcome(text=f"{table(rows)}\n\n{hint}", data={"recipes": found})


def _check_new(path: str) -> None:
    if not store_of(path).is_local:
        raise ConfigError(f"{path}: expected a file on disk")
    if os.path.lexists(path):
        raise _there(path)


def _there(path: str) -> ConfigError:
    return ConfigError(f"{path}: expected a file that is not there yet, got one; choose another: `-o FILE`")


def _write(path: str, text: str, next_step: str) -> Outcome:
    """Write a configuration, and say how it is run: in lines that can be pasted.

    Raises:
        ConfigError: if something has its name already, or it cannot be written.
    """
    _check_new(path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ConfigError(f"{path}: expected a file that can be written, got: No such file or directory")
    store_of(path).check_named(path, path)
    if not store_of(path).create(path, text.encode()):
        raise _there(path)
    line = f"  toolkit run -c {shlex.quote(path)}"
    following = [f"{line} --dry-run  # what would be done; writes no data", f"{line}            # does it"]
    return Outcome(text="\n".join([f"wrote {path}", next_step, *following]), data={"config": path})
