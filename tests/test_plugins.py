"""Plugins: found by name, by file, by module; a tagger from a file in worker processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from toolkit.errors import ConfigError, UnknownPlugin
from toolkit.mix.writer import WRITERS
from toolkit.plugins import camel_case, default_name, snake_case
from toolkit.tag.tagger import TAGGERS

PLUGIN = '''
"""Counts vowels."""

from toolkit import Document, Tagger


class Vowels(Tagger):
    """Vowels of the text."""

    letters: str = "aeiou"

    def tag(self, document: Document) -> int:
        return sum(document.text.count(letter) for letter in self.letters)


class NotOne:
    pass
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "my_vowels.py"
    path.write_text(PLUGIN)
    return path


def test_built_in_plugins_are_found_by_the_names_of_their_files() -> None:
    assert {"language", "line_language", "line_shape", "noise"} <= set(TAGGERS.names())
    assert {"dolma", "oscar", "text"} <= set(WRITERS.names())
    for kind in (TAGGERS, WRITERS):
        for name in kind.names():
            assert kind.find(name).__name__ == camel_case(name)


def test_plugins_are_found_in_files_and_modules(plugin: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    by_file = TAGGERS.find(f"{plugin}:Vowels")
    assert by_file.__name__ == "Vowels"
    monkeypatch.chdir(tmp_path)
    assert TAGGERS.find("my_vowels.py:Vowels") is by_file
    assert TAGGERS.find("./my_vowels.py:Vowels") is by_file
    monkeypatch.syspath_prepend(str(tmp_path))
    assert TAGGERS.find("my_vowels:Vowels").__module__ == "my_vowels"
    assert TAGGERS.find("taggers.noise:Noise") is TAGGERS.find("noise")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("line_shap", r"no tagger is called 'line_shap'; did you mean 'line_shape'\?"),
        ("oscar", "no tagger is called 'oscar'"),
        ("", "no tagger is called ''"),
        ("__init__", "no tagger is called '__init__'"),
        ("no.such.module:Thing", "no.such.module: expected an importable module"),
        ("taggers.noise:Nois", r"expected a class Nois in taggers\.noise, got none; did you mean 'Noise'\?"),
        ("none/such.py:Thing", r"none/such\.py: expected a Python file, got none there"),
    ],
)
def test_what_is_not_found_is_an_error_that_suggests(reference: str, message: str) -> None:
    with pytest.raises(UnknownPlugin, match=message):
        TAGGERS.find(reference)


def test_a_class_that_is_no_tagger_is_refused(plugin: Path) -> None:
    with pytest.raises(ConfigError, match=r"my_vowels\.py:NotOne: expected a class that extends toolkit\.Tagger"):
        TAGGERS.find(f"{plugin}:NotOne")
    with pytest.raises(ConfigError, match=r"mixers\.oscar:Oscar: expected a class that extends toolkit\.Tagger"):
        TAGGERS.find("mixers.oscar:Oscar")
    with pytest.raises(UnknownPlugin, match=r"expected a class Vowel in .*, got none; did you mean 'Vowels'\?"):
        TAGGERS.find(f"{plugin}:Vowel")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("def", "", r"SyntaxError: .* \(broken\.py, line 1\)"),
        ("import no_such_module_anywhere", ":1", "ModuleNotFoundError"),
        ("import json\ndef f():\n    json.loads('')\nf()", ":3", "JSONDecodeError"),
        (
            "from dataclasses import *\nfrom toolkit import Tagger\n@dataclass\nclass A(Tagger):\n    a: int = 1",
            ":3",
            "AttributeError: readonly",
        ),
    ],
)
def test_a_broken_file_is_an_error_each_time_it_is_tried(text: str, line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    for _ in range(2):
        with pytest.raises(ConfigError, match=rf"broken\.py{line}: expected a module .* imported, got {message}"):
            TAGGERS.find(f"{path}:Thing")
    path.write_text(PLUGIN)
    assert TAGGERS.find(f"{path}:Vowels").__name__ == "Vowels", "mended"


@pytest.mark.parametrize(
    ("camel", "snake"),
    [("LineShape", "line_shape"), ("Noise", "noise"), ("C4", "c4"), ("URLBlocklist", "url_blocklist")],
)
def test_classes_and_names_correspond(camel: str, snake: str) -> None:
    assert snake_case(camel) == snake
    assert default_name(f"some/file.py:{camel}") == snake
    assert default_name(snake) == snake


@pytest.mark.slow
def test_a_tagger_from_a_file_runs_in_worker_processes(plugin: Path, run: Run, tmp_path: Path) -> None:
    documents = tmp_path / "data" / "documents"
    documents.mkdir(parents=True)
    for shard in "ab":
        rows = [{"id": f"{shard}{i}", "text": "aeb" * i, "source": "s"} for i in range(3)]
        (documents / f"{shard}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = tmp_path / "c.yaml"
    settings.write_text(f"dataset: {tmp_path}/data\nprocesses: 2\ntag:\n  v-0: {{tagger: '{plugin}:Vowels'}}\n")

    ran = run("tag", "-c", settings, "--json", "--quiet")

    assert (ran.code, ran.json["failed"], ran.json["documents"]) == (0, [], 6), ran.err
    out = (tmp_path / "data" / "attributes" / "v-0" / "b.jsonl").read_text()
    assert [json.loads(line)["attributes"] for line in out.splitlines()] == [{"vowels": 2 * i} for i in range(3)]
    wrong = run("tag", "-c", settings, "--quiet", "tag.v-0.leters=ae")
    assert wrong.code == 2
    assert f"unknown option 'leters' of tagger {plugin}:Vowels; did you mean 'letters'?" in wrong.err


def test_too_few_descriptors_are_called_so() -> None:
    """A package whose folder cannot be listed seems to have no modules."""
    code = """
import os, resource
from toolkit.mix.writer import WRITERS
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
try:
    while True:
        os.open(os.devnull, os.O_RDONLY)
except OSError:
    pass
try:
    WRITERS.find("dolma")
except OSError as error:
    print(error.strerror)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "Too many open files\n", ran.stderr


BROKEN = '''
from collections.abc import Sequence
from toolkit import Document, Reader, Stage, Tagger, Writer

class Listed(Writer):
    """Nothing."""
    def wants(self):
        return ["language"]
    def encode(self, document, attributes):
        return b""

class Unsure(Tagger):
    """A value of an unknown type."""
    def tag(self, document: Document) -> "Nothing":
        return 1

class Unable(Tagger):
    """A number."""
    def check(self) -> None:
        raise ValueError("no model")
    def tag(self, document: Document) -> int:
        return 1

class Idle(Stage):
    """A number."""
    def check(self) -> None:
        raise FileNotFoundError(2, "No such file", "m.bin")
    def make(self, documents: Sequence[Document]) -> Sequence[int]:
        return [1 for _ in documents]

class Shut(Reader):
    """Nothing."""
    def check(self) -> None:
        raise ValueError("no licence")
'''


@pytest.mark.parametrize(
    ("command", "section", "message"),
    [
        ("tag", "tag: {own-0: 'own.py:Unsure'}", "Unsure failed: NameError: name 'Nothing' is not defined"),
        ("tag", "tag: {own-0: 'own.py:Unable'}", "c.yaml:2: tagger own.py:Unable: Unable failed: ValueError: no model"),
        ("make", "make: {own-0: {stage: 'own.py:Idle'}}", "c.yaml:2: make.own-0: Idle failed: FileNotFoundError"),
        ("ingest", "ingest: [{format: 'own.py:Shut', from: c.yaml, source: s}]", "Shut failed: ValueError: no licence"),
        (
            "mix",
            "mix: {output: {format: 'own.py:Listed', path: out}}",
            "c.yaml:2: mix.output: Listed failed: Type",
        ),
    ],
)
def test_what_a_plugin_raises_before_the_work_is_an_error_of_the_configuration(
    command: str, section: str, message: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "c.yaml").write_text(f"dataset: data\n{section}\n", encoding="utf-8")
    (tmp_path / "data/documents").mkdir(parents=True)
    (tmp_path / "data/documents/a.jsonl").write_text('{"id":"a","text":"a","source":"s"}\n', encoding="utf-8")
    ran = run(command, "-c", "c.yaml", "executor={type: in_process}", "--quiet")
    assert (ran.code, message in ran.err, "Traceback" in ran.err) == (2, True, False), ran.err
