"""Commands are files: what they take, say and do is found there, and nowhere else."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from toolkit import cli, command_options, commands
from toolkit.command_options import Options, arguments
from toolkit.commands import ingest, mix, run, stats, status, tag
from toolkit.errors import ConfigError

GREET = '''"""Greet somebody who is named."""

from typing import Annotated, ClassVar

from toolkit.command_options import Flag, Limited
from toolkit.stages.context import Outcome


class Options(Limited, frozen=True, kw_only=True):
    """Options of the command.

    Attributes:
        name: name of the one to greet
        often: more to say
    """

    EXAMPLES: ClassVar = ("toolkit greet --name Ada",)

    name: Annotated[str, Flag(metavar="NAME")]
    often: Annotated[tuple[str, ...], Flag()] = ()


def run(context, options):
    return Outcome(" ".join([f"hello {options.name}", *options.often]), {"limit": options.limit})
'''


@pytest.fixture
def greet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "greet.py").write_text(GREET)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    command_options._files.cache_clear()
    yield
    command_options._files.cache_clear()
    sys.modules.pop("toolkit.commands.greet", None)
    vars(commands).pop("greet", None)


@pytest.mark.usefixtures("greet")
def test_a_file_is_all_that_a_command_needs(run: Run) -> None:
    assert re.search(r"greet +greet somebody who is named\n", run("--help").out)
    shown = run("greet", "--help").out
    assert "Greet somebody who is named." in shown
    assert "Example: toolkit greet --name Ada" in shown
    assert "usage: toolkit greet [-h] --name NAME [--often OFTEN] [--limit N]" in shown
    assert (
        run("greet", "--name", "Ada", "--often", "you", "--often", "there", "--limit=2").out == "hello Ada you there\n"
    )
    assert run("greet", "--name=Ada", "--limit=2", "--json").json == {"limit": 2}
    assert "unrecognized arguments: a=1" in run("greet", "--name=Ada", "a=1").err
    assert "unrecognized arguments: --nmae=A; did you mean '--name'?" in run("greet", "--name=Ada", "--nmae=A").err
    assert (run("greet").code, "required: --name" in run("greet").err) == (2, True)
    said = "error: --limit: expected a number above 0, got '0'; `toolkit greet --help` lists the options\n"
    assert (run("greet", "--name=Ada", "--limit", "0").err) == said


@pytest.mark.parametrize("name", command_options.names())
def test_help_and_options_of_commands(name: str) -> None:
    module = command_options.find(name)
    line = command_options.about(name)
    assert line == (module.__doc__ or "").splitlines()[0]
    assert (line[0].isupper(), line[-1]) == (True, ".")
    listed = arguments(module.Options)
    assert {"json", "quiet", "debug"} <= {each.field for each in listed}
    assert all(each.help for each in listed)
    assert all(example.startswith(f"toolkit {name}") for example in command_options.examples(name))


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        (
            "mix",
            ["-c", "x.yaml", "a=1", "--explain", "3"],
            mix.Options(config="x.yaml", overrides=("a=1",), explain="3"),
        ),
        (
            "ingest",
            ["--config=x", "--shard", "1/4", "b=2"],
            ingest.Options(config="x", shard=(1, 4), overrides=("b=2",)),
        ),
        (
            "tag",
            ["--try", "f", "noise", "noise.x=1"],
            tag.Options(sample="f", targets=("noise",), overrides=("noise.x=1",)),
        ),
        ("stats", ["p", "--by", "host", "--by", "label"], stats.Options(targets=("p",), by=("host", "label"))),
        ("status", ["-c", "x", "--quiet"], status.Options(config="x", quiet=True)),
    ],
)
def test_words_become_options(name: str, words: list[str], expected: Options) -> None:
    assert command_options.parse(name, words) == expected
    assert expected.command == name


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("mix", ["-c", "x", "folder"], "expected KEY=VALUE, got 'folder'"),
        ("tag", ["-c", "x", "folder"], "expected KEY=VALUE, got 'folder'"),
        ("tag", [], "expected a configuration (-c FILE), or something to try taggers on (--try FILE)"),
        ("tag", ["-c", "x", "--lines"], "expected --lines only with --try"),
        ("head", [], "expected a path, or a configuration (-c FILE)"),
        ("stats", ["p", "--mix", "--top", "3"], "expected --mix without --top"),
    ],
)
def test_options_that_do_not_go_together(name: str, words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        command_options.parse(name, words)
    assert str(raised.value).startswith(message)


def test_a_command_gets_the_options_that_it_has_in_common_with_another() -> None:
    given = run.Options(config="x", overrides=("a=1",), shard=(0, 2), overwrite=True, per_shard=True)
    assert given.as_of(mix.Options) == mix.Options(config="x", overrides=("a=1",), shard=(0, 2), overwrite=True)


def test_help_of_all_commands_imports_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def find(name: str) -> Any:
        raise AssertionError(name)

    monkeypatch.setattr(command_options, "find", find)
    assert cli.main(["--version"]) == 0
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "compute attributes of documents" in capsys.readouterr().out


CRASH = """
import os, signal
from toolkit import command_options

def crash_in_native_code(name):
    os.kill(os.getpid(), signal.SIGSEGV)

command_options.find = crash_in_native_code
from toolkit import cli
cli.sys.argv = ["toolkit", "status"]
cli.entry()
"""


def test_a_command_that_native_code_ends_says_where_it_was() -> None:
    ran = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=False)
    assert ran.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in ran.stderr
    assert "in crash_in_native_code" in ran.stderr


def test_settings_hold_where_there_is_no_configuration(tmp_path: Path, run: Run) -> None:
    shard = tmp_path / "a.jsonl"
    shard.write_text('{"id": "0", "text": "a text that is too long", "source": "s"}\n')
    for command in ("head", "validate"):
        assert run(command, shard).code == 0
        ran = run(command, shard, "max_document_bytes=20")
        assert ran.code != 0
        assert "expected a line of at most" in ran.out + ran.err
        run(command, shard, "max_document_byte=20").fails(2, "did you mean 'max_document_bytes'?")
