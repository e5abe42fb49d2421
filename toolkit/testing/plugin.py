"""What the contract suites of all kinds of plugins share: configuring one, looking at it, running it elsewhere."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from toolkit.config.settings import convert, parse, plain
from toolkit.plugins import Kind
from toolkit.tag import describe

P = TypeVar("P", bound=msgspec.Struct)
R = TypeVar("R")

LARGEST = 10_000
"""Bytes of a configured plugin as it is sent to a worker; a model is more."""

_CHILD = """
import pickle, sys
path, function, arguments = pickle.load(sys.stdin.buffer)
sys.path[:] = path
module, name = function
found = getattr(__import__(module, fromlist=[name]), name)(*arguments)
sys.stdout.buffer.write(pickle.dumps(found))
"""


def expect(holds: object, message: str) -> None:
    """Raise AssertionError with a message that says what is wrong and what to do, unless something holds."""
    if not holds:
        raise AssertionError(message)


def name_of(plugin: object) -> str:
    """Return what messages call a plugin: the name of its class."""
    return plugin.__name__ if isinstance(plugin, type) else type(plugin).__name__


def configured(plugin: P | type[P], options: Mapping[str, Any] | None, given: Mapping[str, Any]) -> P:
    """Return a plugin with its options.

    Args:
        plugin: a configured one, which is returned as it is, or a class.
        options: of the class.
        given: values for options that have no default and are not among these.

    Raises:
        AssertionError: if an option without a default gets no value.
        ConfigError: if an option is not as its type says.
    """
    if not isinstance(plugin, type):
        expect(options is None, f"{name_of(plugin)}: expected options with a class, got both with a configured plugin")
        return plugin
    values = dict(options or {})
    for field in msgspec.structs.fields(plugin):
        name = field.encode_name
        if field.required and name not in values:
            expect(
                name in given,
                f"{plugin.__name__}: expected a value of the option {name}, which has no default: "
                f"give the check options={{{name!r}: …}}",
            )
            values[name] = given[name]
    return convert(parse(msgspec.json.encode(values).decode()), plugin, plugin.__name__)


def options_of(plugin: msgspec.Struct) -> dict[str, Any]:
    """Return the options of a plugin as they stand in a configuration."""
    found: dict[str, Any] = plain(plugin)
    return found


def check_configuration(plugin: msgspec.Struct, kind: Kind[Any]) -> None:
    """Check that a plugin says what it is, that its options are described, and that workers can be sent it."""
    class_, name = type(plugin), name_of(plugin)
    expect(class_.__doc__, f"{name}: expected a docstring that says what it is, got none")
    for option in describe.options(class_):
        expect(
            option.description,
            f"{name}: expected a description of the option {option.name}, got none; annotate it: "
            "Annotated[…, msgspec.Meta(description=…)]",
        )
    for field in msgspec.structs.fields(class_):
        try:
            setattr(plugin, field.name, getattr(plugin, field.name))
        except AttributeError:
            continue
        raise AssertionError(f"{name}: expected an option {field.name} that cannot be changed; leave the Struct frozen")
    check_travels(plugin)
    found = kind.find(reference_of(class_))
    expect(found.__name__ == name, f"{name}: expected to be found as {reference_of(class_)}, got {found.__name__}")


def check_travels(plugin: msgspec.Struct) -> None:
    """Check that a plugin is pickled to a few bytes, and is the same again; call it before and after the plugin works.

    Raises:
        AssertionError: if it cannot be pickled, or takes with it what it has loaded.
    """
    name = name_of(plugin)
    try:
        sent = pickle.dumps(plugin)
        same = pickle.loads(sent) == plugin  # noqa: S301  # what was pickled in the line before
    except Exception as error:
        raise AssertionError(
            f"{name}: expected a plugin that can be pickled, got {type(error).__name__}: {error}; workers are sent it: "
            "options are data, and what is loaded stands in a functools.cached_property"
        ) from error
    expect(same, f"{name}: expected the same plugin when it has been pickled, got another; its options must be data")
    expect(
        len(sent) < LARGEST,
        f"{name}: expected less than {LARGEST:,} bytes when it is pickled, got {len(sent):,}; load models in a "
        "functools.cached_property, not into options",
    )


def reference_of(class_: type) -> str:
    """Return how a configuration names a class: ``path/file.py:Class`` or ``package.module:Class``.

    Raises:
        AssertionError: if no module has it by its name.
    """
    module = sys.modules[class_.__module__]
    expect(
        getattr(module, class_.__qualname__, None) is class_,
        f"{class_.__qualname__}: expected a class at the top of a module, got one inside a function or class; workers "
        "import it by its name",
    )
    if module.__name__ == "__main__" or module.__name__.startswith("toolkit_plugin_"):
        return f"{os.path.abspath(str(module.__file__))}:{class_.__name__}"
    return f"{module.__name__}:{class_.__name__}"


def in_new_process(function: Callable[..., R], *arguments: Any) -> R:
    """Return what a function of a module gives in a process of its own, where hashes and the time are others.

    Raises:
        AssertionError: if the process fails; with what it says.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    sent = pickle.dumps((sys.path, (function.__module__, function.__qualname__), arguments))
    command = [sys.executable, "-c", _CHILD]
    done = subprocess.run(command, input=sent, capture_output=True, env=environment)  # noqa: S603  # of ours
    said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    expect(not done.returncode, f"expected a plugin that works in another process, too, got: {said}")
    found: R = pickle.loads(done.stdout)  # noqa: S301  # from the process that was started above
    return found
