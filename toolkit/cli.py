"""The command line: parses, calls a command, prints its outcome.

Exit status: 0 done; 1 done with failed shards or findings; 2 bad usage or configuration, nothing was written;
130 interrupted.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

COMMANDS = {
    "run": "ingest, tag and mix, as far as the configuration has these sections",
    "ingest": "make documents from WET, OSCAR, Dolma, JSON Lines or text files",
    "tag": "compute attributes of documents",
    "mix": "join documents and attributes under rules, and write an output format",
}


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; the reference pages are made from it."""
    top = argparse.ArgumentParser(
        prog="toolkit",
        description="Prepare text corpora for language models: documents, attributes beside them, rules for both.",
        epilog="Exit status: 0 done; 1 failed shards or findings; 2 bad usage or configuration; 130 interrupted.",
    )
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=help_,
            description=help_[0].upper() + help_[1:] + ".",
            epilog=f"Example: toolkit {name} -c configs/quickstart.yaml processes=2",
        )
        _add_common(command)
    return top


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("-c", "--config", required=True, metavar="FILE", help="configuration (YAML)")
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings that override the file's")
    command.add_argument("--dry-run", action="store_true", help="print the settings and the plan, write nothing")
    command.add_argument("--overwrite", action="store_true", help="replace what was made with other settings")
    command.add_argument("--limit", type=int, metavar="N", help="only the first N shards")
    _add_output(command)


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="results as JSON on standard output")
    command.add_argument("--quiet", action="store_true", help="no progress on standard error")
    command.add_argument("--debug", action="store_true", help="tracebacks of failures")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; the exit status."""
    top = parser()
    parsed = top.parse_args(arguments)
    if parsed.version:
        from toolkit import __version__

        print(__version__)
        return 0
    if parsed.command is None:
        top.print_help(sys.stderr)
        return 2
    from toolkit.errors import ToolkitError

    try:
        return _run(parsed)
    except ToolkitError as error:
        if parsed.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def _run(parsed: argparse.Namespace) -> int:
    from toolkit.commands import Options, open_context

    command = importlib.import_module(f"toolkit.commands.{parsed.command}")
    options = Options(
        config=parsed.config,
        overrides=tuple(parsed.overrides),
        dry_run=parsed.dry_run,
        overwrite=parsed.overwrite,
        limit=parsed.limit,
        json=parsed.json,
        quiet=parsed.quiet,
        debug=parsed.debug,
    )
    outcome = command.run(open_context(options))
    if parsed.json:
        import msgspec

        print(msgspec.json.encode(outcome.data).decode())
    elif outcome.text:
        print(outcome.text)
    if outcome.failures:
        sys.stdout.flush()
        print(f"\n{len(outcome.failures)} failed:", file=sys.stderr)
        for message in outcome.failures:
            print(f"  {message}", file=sys.stderr)
    return int(outcome.exit_code)


def entry() -> NoReturn:
    """The console script."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
