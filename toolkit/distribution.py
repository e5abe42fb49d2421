"""The project's name on package indexes, and its derivatives: install lines, the version, folders.

No other module writes that name, or a line that installs something: an index has other projects under similar names.
"""

TYPE_CHECKING = False  # nothing is imported here: `toolkit.bootstrap` reads the names, and cannot wait
if TYPE_CHECKING:
    from toolkit.errors import MissingExtra

NAME = "tagmix"
VERSION = "0.1.0"
COMMANDS = ("toolkit", NAME)
"""The commands that it installs; the second is another name for the first."""

_EXTRAS = rf"""\b{NAME}\[([\w,-]+)\]|\b(?:missing|require)_extra\(\s*["']([\w-]+)["']"""


def version() -> str:
    """Return the installed version.

    Raises:
        importlib.metadata.PackageNotFoundError: if the code runs without being installed.
    """
    import importlib.metadata

    return importlib.metadata.version(NAME)


def install_line(extra: str = "") -> str:
    """Return the install command of this project, with an extra if given."""
    return f"pip install '{NAME}[{extra}]'" if extra else f"pip install {NAME}"


def missing_extra(extra: str, purpose: str, package: str) -> "MissingExtra":
    """Return the error for a missing package of an extra.

    Args:
        extra: Name in our `pyproject.toml`; empty for a package of every installation.
        purpose: User of the package (``Parquet files``, ``perplexity``).
        package: Name on package indexes.
    """
    from toolkit.errors import MissingExtra

    return MissingExtra(f"expected the package {package} for {purpose}, got none: {install_line(extra)}")


def require_extra(extra: str, purpose: str, package: str, module: str = "") -> None:
    """Raise MissingExtra unless a package is installed; arguments as of `missing_extra`.

    Args:
        extra: Name of the extra.
        purpose: User of the package.
        package: Name of the package on package indexes.
        module: Name of its module, if that is another.
    """
    from importlib.util import find_spec

    if find_spec(module or package) is None:
        raise missing_extra(extra, purpose, package)


def extras_named(text: str) -> list[str]:
    """Return the extras in install lines, each once, in order."""
    import re

    results = [name for names in re.findall(_EXTRAS, text) for name in "".join(names).split(",")]
    return list(dict.fromkeys(results))


def requirements_of(extra: str) -> list[str]:
    """Return the packages of an extra; none if it, or the installation, is unknown."""
    import importlib.metadata
    import re

    try:
        required = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    of_extra = re.compile(rf"([\w.-]+).*;.*\bextra == ['\"]{re.escape(extra)}['\"]")
    return [match[1] for line in required if (match := of_extra.match(line))]
