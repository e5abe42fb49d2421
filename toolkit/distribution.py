"""The name of this project on package indexes, and all that is made from it: install lines, the version, folders.

No other module writes that name, or a line that installs something: an index has other projects under similar names.
"""

TYPE_CHECKING = False  # nothing is imported here: `toolkit.beginning` reads the names, and cannot wait
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
    """Return the command that installs this project with an extra, or with what it always needs."""
    return f"pip install '{NAME}[{extra}]'" if extra else f"pip install {NAME}"


def missing_extra(extra: str, purpose: str, package: str) -> "MissingExtra":
    """Return the error to raise where a package of one of our extras is not installed.

    Args:
        extra: its name in our `pyproject.toml`; empty for a package that always belongs to an installation.
        purpose: needs the package (``Parquet files``, ``perplexity``).
        package: its name on package indexes.
    """
    from toolkit.errors import MissingExtra

    return MissingExtra(f"expected the package {package} for {purpose}, got none: {install_line(extra)}")


def require_extra(extra: str, purpose: str, package: str, module: str = "") -> None:
    """Raise MissingExtra unless a package is installed; arguments as of `missing_extra`.

    Args:
        extra: Name of the extra.
        purpose: Name of what needs the package.
        package: Name of the package on package indexes.
        module: Name by which it is imported, where that is another.
    """
    from importlib.util import find_spec

    if find_spec(module or package) is None:
        raise missing_extra(extra, purpose, package)


def extras_named(text: str) -> list[str]:
    """Return the extras that a source text, or a page, says how to install, each once, in their order."""
    import re

    results = [name for names in re.findall(_EXTRAS, text) for name in "".join(names).split(",")]
    return list(dict.fromkeys(results))


def requirements_of(extra: str) -> list[str]:
    """Return the names of the packages that an extra brings; none where it, or the installation, is not known."""
    import importlib.metadata
    import re

    try:
        required = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    of_extra = re.compile(rf"([\w.-]+).*;.*\bextra == ['\"]{re.escape(extra)}['\"]")
    return [match[1] for line in required if (match := of_extra.match(line))]
