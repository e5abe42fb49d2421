"""The command line: parses, calls a command, prints its outcome.

Exit status: 0 done; 1 done with failed shards or findings; 2 bad usage or configuration, nothing was written;
130 interrupted; 143 terminated by SIGTERM, as tidily.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from toolkit import distribution
from toolkit.commands.parser import DOLMAS, LOOKS, NOT_HERE, parser
from toolkit.interrupts import STATUS, Terminated, ignore_sigterm, is_terminated, note_sigint, raise_on_sigterm
from toolkit.storage.addresses import hidden


def main(arguments: Sequence[str] | None = None, prog: str = "toolkit") -> int:
    """Run a command line, which began with `prog`; return the exit status."""
    top = parser(prog)
    given = [hidden(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    if given[:1] in (["-c"], ["--config"]):  # before the command, as Dolma has it
        given = [*given[2:3], *given[:2], *given[3:]]
    if given and (given[0] in NOT_HERE or (given[0] in DOLMAS and any(each.startswith("--") for each in given))):
        from toolkit.interop.dolma.pointers import of_arguments

        if pointer := of_arguments(given):
            print(f"error: {pointer}", file=sys.stderr)
            return 2
    parsed, behind = top.parse_known_args(given)  # KEY=VALUE may also stand behind options
    if unknown := [argument for argument in behind if argument.startswith("-")]:
        top.error(f"unrecognized arguments: {' '.join(unknown)}")
    if behind:
        parsed.arguments = [*parsed.arguments, *behind]
    if parsed.version:
        from toolkit import __version__

        print(__version__)
        return 0
    if parsed.command is None:
        top.print_help(sys.stderr)
        return 2
    from toolkit.errors import ToolkitError, advice

    try:
        return _run(parsed)
    except ToolkitError as error:
        if parsed.debug:
            raise
        _tell(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:  # a full disk, a folder that may not be written: outside any one shard
        if parsed.debug:
            raise
        _tell(f"error: {f'{error.filename}: ' if error.filename else ''}{advice(error)}")
        return 1


def _run(parsed: argparse.Namespace) -> int:
    import dataclasses

    from toolkit.commands.steps.context import Options, open_context
    from toolkit.errors import ConfigError, advice
    from toolkit.storage.retrying import forget_hosts
    from toolkit.storage.roots import forget_roots, note_roots

    forget_hosts()
    forget_roots()

    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(f"the working directory is gone ({error.strerror}); change to one that exists") from None
    command = importlib.import_module(f"toolkit.commands.{parsed.command}")
    given = vars(parsed)
    overrides = [a for a in parsed.arguments if "=" in a and not a.startswith("{") and not os.path.exists(a)]
    targets = [a for a in parsed.arguments if a not in overrides]
    if targets and parsed.command not in (*LOOKS, "taggers") and given.get("sample") is None:
        raise ConfigError(f"expected KEY=VALUE, got {targets[0]!r}")
    if parsed.command in LOOKS and not targets and parsed.config is None:
        raise ConfigError("expected a path, or a configuration (-c FILE)")
    names = {field.name for field in dataclasses.fields(Options)}
    options = Options(
        overrides=tuple(overrides), targets=tuple(targets), **{k: v for k, v in given.items() if k in names}
    )
    note_roots(targets if parsed.command in LOOKS else ())
    with open_context(options) as context:
        outcome = command.run(context)
    status = int(outcome.exit_code)
    try:
        if parsed.json:
            import msgspec

            print(msgspec.json.encode(outcome.data).decode())
        elif outcome.text:
            print(outcome.text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # or else it is tried again at the end
        _tell(f"error: expected to write to standard output, got: {advice(error)} (the work itself is done)")
        status = max(status, 1)
    if outcome.failures:
        _tell(f"\n{len(outcome.failures)} failed:")
        for message in outcome.failures:
            _tell(f"  {message}")
    return status


_closed: set[int] = set()
"""Standard streams that the caller has closed."""


def _tell(message: str) -> None:
    """Says something on standard error; on standard output, where the caller has closed the other."""
    print(message, file=sys.stdout if 2 in _closed and 1 not in _closed else sys.stderr, flush=True)


def _interrupted(error: KeyboardInterrupt) -> int:
    by_signal = isinstance(error, Terminated) or is_terminated()
    what = "terminated" if by_signal else "interrupted"
    print(f"{what}; the same command goes on where it stopped", file=sys.stderr)
    return STATUS if by_signal else 130


def _called() -> str:
    """Return the words with which this process was started: ``toolkit``, ``tagmix`` or ``python -m toolkit``."""
    name = os.path.basename(sys.argv[0])
    return "python -m toolkit" if name == "__main__.py" else name if name in distribution.COMMANDS else "toolkit"


def entry() -> NoReturn:
    """The console script."""
    from toolkit.runs.processes import hold_standard_streams, import_no_scripts, one_thread_each

    _closed.update(hold_standard_streams())
    import_no_scripts()
    one_thread_each()
    try:
        raise_on_sigterm(Terminated)
        note_sigint()
        status = main(prog=_called())
    except KeyboardInterrupt as error:  # before a command has begun
        status = _interrupted(error)
    ignore_sigterm()
    sys.exit(status)


if __name__ == "__main__":
    entry()
