"""``{drop: python, function: "my.py:function"}`` drops the documents for which it returns True; ``keep``, False."""

import inspect
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

from toolkit.config.plugin_code import code_of_module
from toolkit.config.settings import ConfigNode, Description
from toolkit.errors import ConfigError, DataError, errors_from
from toolkit.plugins import find_function
from toolkit.rules.rule import CompiledRule, Compiler, Form, Role, Rule

Word = Annotated[str, Description(description="the word `python`")]


class PythonForm(Form, kw_only=True):
    """The common options of `drop: python` and `keep: python` in YAML.

    Attributes:
        function: `path/file.py:function` or `package.module:function`, called (document, attributes)
    """

    function: str

    WORD = "python"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        """Return the rule of a function, beside the configuration. Otherwise it lies below the working directory."""
        beside = os.path.join(base, self.function)
        is_beside = os.path.isfile(beside.rpartition(":")[0])
        with place.errors_at("function", keeps=True):
            is_file = ".py:" in self.function
            reference = beside if is_beside else os.path.join(place.root, self.function) if is_file else self.function
            function = find_function(reference)
            _check(function.function, reference)
            code = code_of_module(function.module)
        kind = KeepPython if self.KEY == "keep" else DropPython
        name = self.named(os.path.basename(self.function))
        return [kind(name=name, function=reference, code=code, when=self.when)]


class DropPythonForm(PythonForm, kw_only=True):
    """``{drop: python, function: "my.py:function"}`` drops the documents for which a function returns True."""

    drop: Word

    KEY = "drop"


class KeepPythonForm(PythonForm, kw_only=True):
    """``{keep: python, function: "my.py:function"}`` drops the documents for which a function returns False."""

    keep: Word

    KEY = "keep"


class DropPython(Rule):
    """The rule `drop: python`.

    Attributes:
        function: Path of the file, or name of the module, and the name of the function.
        code: Digests of the function's code, by file.
    """

    function: str
    code: dict[str, str]

    FORM: ClassVar[type[Form]] = DropPythonForm
    ROLE = Role.DROPS
    READS_ALL = True

    def recorded(self) -> dict[str, Any]:
        return super().recorded() | {"function": os.path.basename(self.function)}

    def compile(self, compiler: Compiler) -> CompiledRule:
        compiler.needs.joined = compiler.needs.documents = True
        call = compiler.called(_decision(find_function(self.function).function, self.function))
        return compiler.decision_by_code(self, compiler.names_for(self), f"{'not ' if self.KEEPS else ''}{call}")


class KeepPython(DropPython):
    """The rule `keep: python`: as `DropPython`, of the documents for which the function returns False."""

    FORM: ClassVar[type[Form]] = KeepPythonForm
    KEEPS = True


def _check(function: Callable[..., Any], reference: str) -> None:
    """Check the parameters and the kind of a function. It takes a document and attributes, and returns True or False.

    Raises:
        ConfigError: if it cannot, or never does.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # of some functions in C
        return
    place = f"{_defined(function, reference)}: expected a function of (document, attributes)"
    with errors_from(f"{place}, got {signature}", of=TypeError):
        signature.bind(None, None)
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        kind = "a generator" if inspect.isgeneratorfunction(function) else "a coroutine"
        raise ConfigError(f"{place} that returns True or False, got {kind}")


def _defined(function: Callable[..., Any], reference: str) -> str:
    """Return the place of a function's definition, or its reference. A function without code in Python has a reference
    alone.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else reference


def _decision(function: Callable[..., Any], reference: str) -> Callable[[Any], bool]:
    """Return a checked call of the user's function with a document."""
    defined = _defined(function, reference)
    folder = os.path.join(os.path.dirname(defined), "")

    def decide(document: Any) -> bool:
        try:
            result = function(document, document.joined.get("attributes") or {})
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)[1:]
            places = [f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename.startswith(folder)]
            place = places[-1] if places else defined  # the user's, of all that failed
            raise DataError(f"{place}: {type(error).__name__}: {error}") from None
        if not isinstance(result, bool):
            raise DataError(f"{defined}: expected True or False from {reference}, got {result!r}")
        return result

    return decide
