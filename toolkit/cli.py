"""Run the command line: parse it, call a command, print its outcome.

Exit status: 0 done; 1 done with failed shards or findings; 2 bad usage or configuration, nothing was written;
130 interrupted; 143 terminated by SIGTERM, as tidily.
"""

import atexit
import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from typing import NoReturn

from toolkit import bootstrap, command_options, distribution, interrupts
from toolkit.command_options import Options
from toolkit.errors import ToolkitError, advice, did_you_mean, indented
from toolkit.execution import processes
from toolkit.session import Session
from toolkit.storage.addresses import redact_url


def main(arguments: Sequence[str] | None = None, prog: str = "toolkit") -> int:
    """Run a command line, called as `prog`; return the exit status."""
    with Session().bound():
        return _main(arguments, prog)


def _main(arguments: Sequence[str] | None, prog: str) -> int:
    words = [redact_url(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    words = _command_first(words)
    if pointer := _dolma(words):
        print(f"error: {pointer}", file=sys.stderr)
        return 2
    if not words or words[0] not in command_options.names():
        return _without_command(words, prog)
    debug = "--debug" in words
    try:
        options = command_options.parse(words[0], words[1:], prog)
        debug = options.debug
        return _run(options)
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except Exception as error:
        if debug:
            raise
        if interrupts.is_signalled():  # what is given up because of it may have an error of its own
            return _interrupted(error)
        return _failed(error)


def _failed(error: Exception) -> int:
    """Print an error for the user; return the exit status. Our own mistakes are raised."""
    if isinstance(error, ToolkitError):
        _tell(f"error: {indented(error)}")
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        return 1
    if isinstance(error, OSError):  # a full disk, a folder that may not be written: outside any one shard
        _tell(f"error: {f'{error.filename}: ' if error.filename else ''}{advice(error)}")
        return 1
    raise error


def _command_first(arguments: list[str]) -> list[str]:
    """Return the words of a command line, the command first."""
    if not arguments or not arguments[0].startswith("-"):
        return arguments
    words = [
        i for i, word in enumerate(arguments) if not word.startswith("-") and arguments[i - 1] not in ("-c", "--config")
    ]
    at = next((i for i in words if arguments[i] in command_options.names()), words[0] if words else 0)
    return [arguments[at], *arguments[:at], *arguments[at + 1 :]]


def _dolma(arguments: Sequence[str]) -> str | None:
    """Return a hint for a command line of Dolma's, else None."""
    if not arguments or arguments[0].startswith("-"):
        return None
    if arguments[0] in command_options.names() and not any(item.startswith("--") for item in arguments):
        return None
    from toolkit.interop.dolma import of_arguments

    return of_arguments(arguments)


def _without_command(arguments: Sequence[str], prog: str) -> int:
    word = arguments[0] if arguments else "-"
    if word.endswith((".yaml", ".yml")):
        _tell(f"error: expected a command, got the configuration {word}; write {prog} run -c {word}")
        return 2
    if not word.startswith("-"):
        hint = did_you_mean(word, command_options.names()) or f"; there are: {', '.join(command_options.names())}"
        hint = "; the head of a dataset card has the features: run `toolkit card`" if word == "features" else hint
        _tell(f"error: expected a command, got {word!r}{hint}; `{prog} --help` says what each does")
        return 2
    top = command_options.parser(prog)
    if top.parse_args(arguments).version:
        print(distribution.VERSION)
        return 0
    top.print_help(sys.stderr)
    return 2


def _run(options: Options) -> int:
    from toolkit.data.excerpts import harmless, harmless_json
    from toolkit.stages.dispatch import run_command

    processes.set_up_malloc()
    outcome = run_command(options, begun=_hear_signals)
    status = int(outcome.exit_code)
    try:
        if options.json:
            import msgspec

            _print_in_utf8(harmless_json(msgspec.json.encode(outcome.data).decode()))
        elif outcome.text:
            if outcome.for_programs and not sys.stdout.isatty():
                _print_in_utf8(outcome.text)
            else:
                print(harmless(outcome.text))
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
            _tell(f"  {indented(message, '    ')}")
    return status


def _print_in_utf8(text: str) -> None:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    print(text)


_closed: set[int] = set()
"""Standard streams that the caller has closed."""


def _tell(message: str) -> None:
    """Print to stderr, or to stdout if stderr is closed."""
    print(message, file=sys.stdout if 2 in _closed and 1 not in _closed else sys.stderr, flush=True)


def _interrupted(error: BaseException) -> int:
    by_signal = isinstance(error, interrupts.Terminated) or interrupts.is_terminated()
    interrupts.acknowledge()
    event = "terminated" if by_signal else "interrupted"
    print(f"{event}; {interrupts.GOES_ON}", file=sys.stderr)
    return interrupts.STATUS if by_signal else 130


def _called() -> str:
    """Return the name of this program: ``toolkit``, ``tagmix`` or ``python -m toolkit``."""
    name = os.path.basename(sys.argv[0])
    return "python -m toolkit" if name == "__main__.py" else name if name in distribution.COMMANDS else "toolkit"


def entry() -> NoReturn:
    """Run the console script, or answer shell completion."""
    bootstrap.end_by_signals()
    if "_ARGCOMPLETE" in os.environ:  # a shell wants to know how a word can go on
        from toolkit import completion

        completion.answer()
    from toolkit.data.excerpts import make_harmless

    processes.is_program = True
    _closed.update(processes.hold_standard_streams())
    with contextlib.suppress(OSError):  # else a crash of native code ends the command without a word
        faulthandler.enable()
    processes.import_no_scripts()
    processes.one_thread_each()
    make_harmless()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what PYTHONIOENCODING, or a terminal, has no letter for
    status = main(prog=_called())
    interrupts.keep_status(status)
    _end(status)


def _end(status: int) -> NoReturn:
    """End the process; after a success with nothing to close, without freeing object by object."""
    if status == 0 and threading.active_count() == 1 and not (sys.getprofile() or sys.gettrace()):
        with contextlib.suppress(OSError, ValueError):  # what cannot be written is told by Python, below
            atexit._run_exitfuncs()  # noqa: SLF001  # as `multiprocessing` does in its processes
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    sys.exit(status)


def _hear_signals() -> None:
    """Let signals interrupt the command, to tidy up; before, they end the program at once."""
    if processes.is_program:
        bootstrap.collect_garbage()
        interrupts.note_signals(interrupts.Terminated)


if __name__ == "__main__":
    entry()
