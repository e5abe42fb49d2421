"""Shared parts of the contract suites: configuring a plugin, looking at it, running it elsewhere."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from toolkit.config.settings import convert, parse, plain
from toolkit.data.documents import Document, Prediction, Span
from toolkit.plugins import Kind
from toolkit.tag import tagger_docs

NASTY: Mapping[str, str] = {
    "spaces": " " * 100_000,
    "one long line": "word, " * 17_000,
    "one long word": "x" * 100_000,
    "only newlines": "\n" * 20_000,
    "only carriage returns": "\r" * 1000,
    "windows": "one\r\ntwo\r\n\r\nthree\r\r\n",
    "nuls": "a\0b\n\0\n\0\0c",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff",
    "emoji": "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea\n" * 50,
    "combining": "a" + "\u0301" * 5000 + "\ne\u0308\n\u0301",
    "right to left": "\u202eمرحبا بالعالم\u202c\nשלום עולם\n",
    "noncharacters": "\ufffe\uffff\U0010ffff\n\ue000",
    "no line end": "last line",
    "markup": "<p>" * 1000 + "\\u0000 %s {} $&\n[[",
}
"""Texts that have broken programs, by what is unusual about them."""

LONGEST = 3000
"""Characters of them that are tried in several orders."""

SHORT: Mapping[str, str] = {
    "plain": "The library opens at nine.\nIt closes at six.",
    "other scripts": "Η βιβλιοθήκη ανοίγει στις εννέα.\n図書館は九時に開きます。",
    "empty": "",
    "windows": "one\r\ntwo\r\n\r\n",
    "blank last lines": "one\n\n\n",
    "blank first lines": "\n\none",
    "a line feed": "\n",
    "other line ends": "a\u2028b\x85c\x0cd\re\0",
    "quotes": 'a "b" \\ \t / \x7f <é \U0001f600>',
}
"""Texts for formats, by what is unusual about them."""


def as_json(value: Any) -> Any:
    """Return a value after a round trip through JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


def plausible(type_: Any, document: Document, number: int = 0, label: str | None = None) -> Any:
    """Return a plausible value of a type.

    Lists have an element a line.

    Args:
        type_: a msgspec type.
        document: Document that the value is of.
        number: Number of the value, so that those of a list are not all the same.
        label: Label of predictions and other objects with a label; by default they have several.
    """
    options = [arg for arg in get_args(type_) if arg is not type(None)]
    if type_ is Prediction:
        return Prediction(("en", "fr", "de")[number % 3] if label is None else label, 0.875)
    if type_ is Span:
        return Span(*(document.line_spans[number] if document.lines else (0, 0)))
    if get_origin(type_) is list:
        return [plausible(options[0], document, i, label) for i, _ in enumerate(document.lines)]
    if type(None) in get_args(type_):
        return None if number % 4 == 3 else plausible(options[0], document, number, label)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        fields = [field for field in msgspec.structs.fields(type_) if field.required]
        results = {field.name: plausible(field.type, document, number, label) for field in fields}
        return type_(**(results | ({"label": label} if label is not None and "label" in results else {})))
    simple = {bool: bool(number % 2), int: number, float: number / 8, str: f"value {number}"}
    return simple[type_] if type_ in simple else msgspec.convert({}, type_)


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
    """Raise AssertionError unless a condition holds.

    The message says what is wrong and what to do.
    """
    if not holds:
        raise AssertionError(message)


def name_of(plugin: object) -> str:
    """Return the name of a plugin's class, for messages."""
    return plugin.__name__ if isinstance(plugin, type) else type(plugin).__name__


def configured(plugin: P | type[P], options: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> P:
    """Return a plugin with its options.

    Args:
        plugin: a configured one, which is returned as it is, or a class.
        options: Options of the class.
        defaults: values for options that have no default and are not among these.

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
                name in defaults,
                f"{plugin.__name__}: expected a value of the option {name}, which has no default: "
                f"give the check options={{{name!r}: …}}",
            )
            values[name] = defaults[name]
    return convert(parse(msgspec.json.encode(values).decode()), plugin, plugin.__name__)


def options_of(plugin: msgspec.Struct) -> dict[str, Any]:
    """Return the options of a plugin as they stand in a configuration."""
    results: dict[str, Any] = plain(plugin)
    return results


def check_configuration(plugin: msgspec.Struct, kind: Kind[Any]) -> None:
    """Check a plugin's docstring and options, and pickle it."""
    class_, name = type(plugin), name_of(plugin)
    expect(class_.__doc__, f"{name}: expected a docstring that says what it is, got none")
    for option in tagger_docs.options(class_):
        expect(
            option.description,
            f"{name}: expected a description of the option {option.name}, got none; write it under `Attributes:` in "
            "the docstring of the class",
        )
    for field in msgspec.structs.fields(class_):
        try:
            setattr(plugin, field.name, getattr(plugin, field.name))
        except AttributeError:
            continue
        raise AssertionError(f"{name}: expected an option {field.name} that cannot be changed; leave the Struct frozen")
    check_travels(plugin)
    result = kind.find(reference_of(class_))
    expect(result.__name__ == name, f"{name}: expected to be found as {reference_of(class_)}, got {result.__name__}")


def check_travels(plugin: msgspec.Struct) -> None:
    """Check a plugin before and after pickling.

    It must be small, and the same again.

    Call it before and after the plugin works.

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


def remade(kind: Kind[P], reference: str, options: Mapping[str, Any]) -> P:
    """Return a plugin from its name and options, as another process does."""
    return convert(parse(msgspec.json.encode(options).decode()), kind.find(reference), reference)


def in_new_process(function: Callable[..., R], *arguments: Any) -> R:
    """Return a function's result from a new process.

    Hashes and the time are others there.

    Raises:
        AssertionError: if the process fails; with what it says.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    sent = pickle.dumps((sys.path, (function.__module__, function.__qualname__), arguments))
    command = [sys.executable, "-c", _CHILD]
    process = subprocess.run(command, input=sent, capture_output=True, env=environment)  # noqa: S603  # of ours
    message = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    expect(not process.returncode, f"expected a plugin that works in another process, too, got: {message}")
    result: R = pickle.loads(process.stdout)  # noqa: S301  # from the process that was started above
    return result
