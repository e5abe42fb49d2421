"""Taggers are listed, described and tried without a dataset; a user's own work wherever they are."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Ran, Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, write_rows
from toolkit import plugins
from toolkit.tag import tagger_docs, trial
from toolkit.tag.tagger import TAGGERS

OWN = '''
"""Vowels.

Source: made up.
"""

import os
from typing import Annotated

import msgspec

from toolkit import Attribute, Document, Example, Model, Tagger


class Counted(msgspec.Struct, frozen=True):
    vowels: int
    pid: int


class Vowels(Tagger):
    """Vowels of the text, and the process that counted them.

    More of this.
    """

    EXAMPLES = (Example("a", {"vowels": 1, "pid": 1}),)

    letters: Annotated[str, msgspec.Meta(description="what is a vowel")] = "aeiou"
    variant: Annotated[object, msgspec.Meta(description="not one that is chosen from")] = None

    def tag(self, document: Document) -> Counted:
        return Counted(sum(document.text.count(letter) for letter in self.letters), os.getpid())


class PerWord(Tagger):
    """Vowels a word."""

    vowels: Annotated[str, Attribute("vowels.vowels", int)]

    def tag(self, document: Document) -> float:
        return document.attribute(self.vowels) / len(document.words)
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A file with two taggers, one of which reads the other."""
    path = tmp_path / "own" / "my_vowels.py"
    path.parent.mkdir()
    path.write_text(OWN)
    return path


@pytest.fixture
def installed(own: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in an installed package with entry points, of which one is broken."""
    info = own.parent / "own_taggers-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-taggers\nVersion: 1.5\n")
    entries = ["own_vowels = my_vowels:Vowels", "broken = no_such_module:Thing", "no_class = my_vowels:Counted"]
    entries.append("noise = my_vowels:Vowels")  # the name of a built-in tagger
    (info / "entry_points.txt").write_text("\n".join(["[toolkit.taggers]", *entries]))
    monkeypatch.syspath_prepend(str(own.parent))
    plugins._entry_points.cache_clear()
    plugins._all_entry_points.cache_clear()
    return own


@pytest.fixture(autouse=True)
def forget_entry_points() -> Any:
    yield
    plugins._entry_points.cache_clear()
    plugins._all_entry_points.cache_clear()
    for name in ("my_vowels", "broken_module"):
        sys.modules.pop(name, None)


# --- a list -----------------------------------------------------------------------------------------------------------


def by_name(ran: Ran) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in ran.json["taggers"]}


@pytest.mark.slow
def test_built_in_taggers_are_listed_with_what_they_give(run: Run) -> None:
    found = by_name(run("taggers", "--json"))
    assert {"noise", "line_shape", "language"} <= set(found)
    assert found["noise"] == {
        "name": "noise",
        "about": "How much of a document is neither letters nor marks.",
        "from": "built in",
        "error": None,
    }
    ran = run("taggers").shows("\nnoise ")
    assert ran.err == ""


@pytest.mark.slow
def test_taggers_of_packages_and_files_are_listed_and_broken_ones_hide_none(
    installed: Path, run: Run, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import sys\nsys.exit('gone')\n")
    ran = run("taggers", "--file", installed, "--file", broken, "--file", tmp_path / "none.py", "--json").fails(1)
    found = by_name(ran)
    assert found["own_vowels"]["from"] == "own-taggers 1.5"
    assert found["noise"]["from"] == "built in"  # an installed package changes no values of existing configurations
    assert found["own_vowels"]["about"] == "Vowels of the text, and the process that counted them."
    assert "no_such_module" in found["broken"]["error"]
    assert found["no_class"]["error"].startswith("no_class: expected a class that extends toolkit.Tagger, got")
    assert found[f"{installed}:PerWord"]["about"] == "Vowels a word."
    assert found[f"{installed}:Vowels"]["from"] == f"file {installed}"
    assert found[str(broken)]["error"].endswith("a module that can be imported, got SystemExit: gone")
    assert found[str(tmp_path / "none.py")]["error"].endswith("expected a Python file, got none there")
    assert not any("\n" in (each["error"] or "") for each in found.values())
    assert found["noise"]["error"] is None

    shown = run("taggers", "--file", broken).fails(1)
    assert "\nnoise " in shown.out
    assert f"\n{broken} (file {broken}): {found[str(broken)]['error']}\n" in shown.out
    assert "Traceback" not in shown.out + shown.err


def test_a_broken_entry_point_is_one_line_in_other_commands_too(installed: Path, run: Run, tmp_path: Path) -> None:
    ran = run("taggers", "broken").fails(2)
    assert ran.err.startswith("error: broken: expected no_such_module:Thing to be importable, got ModuleNotFoundError")
    assert ran.err.count("\n") == 1


# --- one --------------------------------------------------------------------------------------------------------------


def test_a_tagger_is_described_and_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SECONDS", 0.02)
    (found,) = run("taggers", "line_shape", "--json").json["taggers"]
    assert found["documentation"].startswith("Numbers of lines, short lines")
    assert found["source"].startswith("ungoliant")
    assert found["value"]["object"]["lines"] == "int"
    assert found["options"][0] == {
        "name": "short_chars",
        "type": "integer ≥ 0",
        "default": "`100`",
        "description": "code points up to which a line is short",
    }
    assert found["cost"]["mb_per_s"] > 0
    assert found["cost"]["documents"] > 0
    assert found["examples"][0]["text"] == ""
    assert found["not_measured"] is None
    text = run("taggers", "line_shape").out
    for part in ("taggers/line_shape.py", "Source: ungoliant", "short_chars ", " MB/s a core", '  text: ""\n'):
        assert part in text


def test_what_a_tagger_reads_is_computed_before_it_is_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SECONDS", 0.02)
    (found,) = run("taggers", "language", "--json").json["taggers"]
    assert found["reads"] == [{"option": "lines", "key": "line_language", "required": True, "or_value": False}]
    assert found["cost"]["ns_per_char"] > 0


def test_own_taggers_are_described_with_their_options(own: Path, run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a text\n" * 50)
    ran = run("taggers", f"{own}:Vowels", "--try", text, "vowels.letters=xyz").succeeds()
    assert f"(file {own}" in ran.out
    assert "(here, now, alone; 1 document, " in ran.out
    both = run("taggers", own, "--json").json["taggers"]
    assert [each["name"] for each in both] == ["vowels", "per_word"]
    assert both[1]["not_measured"].startswith("tagger per_word reads 'vowels.vowels'")
    for arguments, expected in (
        (("vowels.leters=x",), "unknown option 'leters'"),
        (("vowel.letters=x",), "got no tagger 'vowel'; did you mean 'vowels'?"),
        (("--try", tmp_path / "none"), "expected a text, a shard of documents"),
    ):
        run("taggers", f"{own}:Vowels", *arguments).fails(2, expected)


@pytest.mark.slow
def test_a_tagger_with_a_wrong_type_is_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(OWN.replace("letters: Annotated[str, msgspec.Meta(", "letters: Annotated[str, msgspec.Meta(ge=1, "))
    ran = run("taggers", f"{path}:Vowels").fails(
        2, "expected types that msgspec knows, got TypeError: Can only set `ge` on a numeric type"
    )
    assert ran.err.count("\n") == 1
    run("taggers", "--file", path).shows(f"{path}:Vowels (file {path}): TypeError: Can only set `ge`")


def test_choices_name_their_extras() -> None:
    class_ = TAGGERS.find("gopher_quality")
    assert tagger_docs.extras(class_) == {"icu": "splitter: icu"}
    assert tagger_docs.choices(class_, "variant")[:2] == ["paper", "datatrove"], "in the order of the file"
    assert tagger_docs.models(TAGGERS.find("line_language")) == {"model": "lid.176.ftz"}


def test_the_sample_is_the_same_every_time_and_has_many_scripts() -> None:
    pages = trial.sample_pages(300_000)
    assert [page.text for page in pages] == [page.text for page in trial.sample_pages(300_000)]
    text = "".join(page.text for page in pages)
    assert 300_000 <= len(text.encode()) < 320_000
    assert all(sentences[:5] in text for sentences in trial.sentences().values())


# --- tried on documents -----------------------------------------------------------------------------------------------

TEXT = "One short line.\nmail@example.org\n\nUne deuxième ligne, plus longue que la première."


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "doc.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_taggers_are_tried_on_a_text(text: Path, run: Run) -> None:
    ran = run("tag", "--try", text, "noise", "line_shape", "line_shape.short_chars=4", "--json").succeeds()
    (found,) = ran.json["documents"]
    assert (found["id"], found["place"]) == (str(text), str(text))
    assert list(found["attributes"]) == ["noise", "line_shape"]
    assert found["attributes"]["noise"]["chars"] == len(TEXT)
    assert found["attributes"]["line_shape"]["short"] == 1
    shown = run("tag", "--try", text, "noise").out.splitlines()
    assert shown[0] == f"{text}  {len(TEXT)} characters"
    assert shown[1:3] == ["  noise:", f"    chars  {len(TEXT)}"]


def test_each_line_may_be_a_document(text: Path, run: Run) -> None:
    found = run("tag", "--try", text, "noise", "--lines", "-n", "2", "--json").json["documents"]
    assert [each["place"] for each in found] == [f"{text}:1", f"{text}:2"]
    assert [each["attributes"]["noise"]["chars"] for each in found] == [15, 16]


def test_a_tagger_reads_another_of_those_that_are_named(text: Path, own: Path, run: Run) -> None:
    ran = run("tag", "--try", text, "language", "line_language", "--json")
    assert list(ran.json["documents"][0]["attributes"]) == ["language", "line_language"], "as they were named"
    (found,) = run("tag", "--try", text, own, "vowels.letters=i", "--json").json["documents"]
    assert found["attributes"]["per_word"] == found["attributes"]["vowels"]["vowels"] / 13
    run(
        "tag", "--try", text, f"{{tagger: '{own}:Vowels', as: v}}", f"{own}:PerWord", "per_word.vowels=v.v.vowels"
    ).succeeds()


def test_a_shard_is_tried_with_its_ids_and_long_values_are_cut(run: Run, tmp_path: Path) -> None:
    rows = [document(f"id-{i}", "word\n" * 200 * (i + 1)) for i in range(5)]
    path = write_rows(tmp_path / "x.jsonl.gz", rows)
    ran = run("tag", "--try", path, "line_language", "length_spans")
    assert f"{path}:1  id-0  1,000 characters\n" in ran.out
    assert f"{path}:3  id-2" in ran.out
    assert "id-3" not in ran.out
    assert "    … 194 more\n" in ran.out
    assert "[0,1000,1000.0]  | word⏎word" in ran.out
    assert len(ran.out) < 3000
    found = run("tag", "--try", path, "line_language", "--json", "-n", "1").json["documents"]
    assert len(found[0]["attributes"]["line_language"]) == 200
    assert run("tag", "--try", path, "noise", "--lines").code == 2


@pytest.mark.parametrize("shard", [False, True], ids=["text", "documents"])
def test_standard_input_is_a_text_or_documents(shard: bool, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [document("a", "one"), document("b", "two\nlines")]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows) if shard else "one é\n".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    found = run("tag", "--try", "-", "noise", "--json").json["documents"]
    assert [each["place"] for each in found] == (
        ["standard input:1", "standard input:2"] if shard else ["standard input"]
    )
    assert [each["attributes"]["noise"]["chars"] for each in found] == ([3, 9] if shard else [5])


def test_the_taggers_of_a_configuration_are_tried_in_their_order(project: Project, text: Path) -> None:
    project.config["tag"] = {
        "language-0": {"tagger": "language", "lines": "lines-0"},
        "lines-0": "line_language",
        "shape-0": ["noise", {"tagger": "line_shape", "as": "shape"}],
    }
    ran = project.ok("tag", "--try", text, "--json", "tag.lines-0.min_prob=0.1")
    (found,) = ran.json["documents"]
    assert list(found["attributes"]) == ["language-0", "lines-0", "shape-0"]
    assert list(found["attributes"]["shape-0"]) == ["noise", "shape"]
    assert None not in found["attributes"]["lines-0"]["line_language"][:2]
    assert "  [shape-0] shape:\n" in project.ok("tag", "--try", text).out
    assert not project.data.exists(), "nothing is written"
    project("tag", "--try", text, "noise").fails(2, "got 'noise' too")


def test_a_text_that_is_none_is_an_error(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"\xff")
    assert "bad.txt: expected a text in UTF-8" in run("tag", "--try", bad, "noise").err
    bad.write_bytes(b"")
    assert run("tag", "--try", bad, "noise", "--json").json["documents"][0]["attributes"]["noise"]["chars"] == 0
    assert "expected a document, got none" in run("tag", "--try", bad, "noise", "--lines").err


# --- an option that is a value or an attribute ------------------------------------------------------------------------

EITHER = '''
"""Greets.

Source: made up.
"""

from typing import Annotated

import msgspec

from toolkit import Attribute, Batch, Document, Tagger


class Found(msgspec.Struct):
    label: str | None


class Kind(Tagger):
    def tag(self, document: Document) -> Found:
        return Found(document.text[:1] or None)


class Greeting(Tagger):
    label: Annotated[str | None, Attribute("kind.label", str | None, or_value=True)] = None

    def tag(self, document: Document) -> str:
        return f"{document.given(self.label)}"

    def tag_batch(self, documents):
        return [f"{value}" for value in Batch.of(documents).given(self.label)]
'''


@pytest.fixture
def greeting(tmp_path: Path, project: Project) -> Project:
    """Two documents, and a set ``kind-0`` of what they begin with."""
    (tmp_path / "greeting.py").write_text(EITHER)
    write_rows(project.documents / "a.jsonl.gz", [document("1", "x"), document("2", "")])
    project.config["tag"] = {"kind-0": f"{tmp_path}/greeting.py:Kind"}
    return project


def greet(project: Project, **options: object) -> Ran:
    project.config["tag"]["greeting-0"] = {"tagger": f"{project.root}/greeting.py:Greeting", **options}
    return project("tag")


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"label": "en"}, ["en", "en"]),
        ({"label": "kind-0.kind.label"}, ["x", "None"]),
        ({"label": None}, ["None", "None"]),
        ({}, ["None", "None"]),
    ],
)
@pytest.mark.parametrize("at_once", [True, *slow(False)])
def test_what_has_a_dot_is_an_attribute_and_what_has_none_a_value(
    options: dict[str, object], values: list[str], at_once: bool, greeting: Project
) -> None:
    if not at_once:
        greeting.ok("tag")
        if options.get("label") == "kind-0.kind.label":
            del greeting.config["tag"]["kind-0"]
    greet(greeting, **options).succeeds()
    assert [row["greeting"] for row in greeting.values("greeting-0", "a.jsonl.gz")] == values


# --- in every executor ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "executor"),
    [
        ("file", "in_process"),
        ("module", "in_process"),
        ("entry point", "local"),
        *slow(("entry point", "in_process"), ("file", "local"), ("module", "local")),
    ],
)
def test_own_taggers_run_wherever_they_are(where: str, executor: str, installed: Path, project: Project) -> None:
    reference = {"file": f"{installed}:Vowels", "module": "my_vowels:Vowels", "entry point": "own_vowels"}[where]
    for shard in "abc":
        rows = [document(f"{shard}{i}", "aeb" * i) for i in range(3)]
        write_rows(project.documents / f"{shard}.jsonl.gz", rows)
    project.config |= {"processes": 2, "executor": {"type": executor}}
    project.config["tag"] = {"v-0": {"tagger": reference, "as": "v"}}
    project.ok("tag")
    found = [row["v"] for shard in "abc" for row in project.values("v-0", f"{shard}.jsonl.gz")]
    assert [each["vowels"] for each in found] == [0, 2, 4] * 3
    assert (os.getpid() in {each["pid"] for each in found}) == (executor == "in_process")


@pytest.mark.slow
def test_own_taggers_run_in_the_processes_of_one_shard(
    installed: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.execution.workers.LARGE", 1)
    rows = [document(str(i), "ae" * i) for i in range(2000)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config |= {"processes": 2, "executor": {"type": "local"}}
    taggers = [f"{installed}:Vowels", {"tagger": "my_vowels:Vowels", "as": "v2"}, {"tagger": "own_vowels", "as": "v3"}]
    project.config["tag"] = {"v-0": taggers}
    project.ok("tag")
    found = project.values("v-0", "a.jsonl.gz")
    assert [each["vowels"]["vowels"] for each in found] == [2 * i for i in range(2000)]
    assert all(each["vowels"] == each["v2"] == each["v3"] for each in found)
    assert {each["vowels"]["pid"] for each in found} != {os.getpid()}


def test_the_page_tells_of_both_commands() -> None:
    page = (ROOT / "docs" / "writing-a-tagger.md").read_text(encoding="utf-8")
    assert "toolkit tag --try " in page
    assert "toolkit taggers " in page


def test_an_option_that_names_a_set_means_its_only_key_whatever_it_is_called(project: Project) -> None:
    """Also where rules edit the text, and the value is computed anew from those of the lines that are left."""
    write_rows(project.documents / "a.jsonl.gz", [document("1", "the dog and the cat\nder Hund und die Katze\n")])
    values = []
    for alias in ("line_language", "lid"):
        project.config["tag"] = {
            "lines-0": {"tagger": "line_language", "as": alias},
            "language-0": {"tagger": "language", "lines": "lines-0"},
        }
        project.ok("tag", "--overwrite")
        assert "up to date" in project.ok("tag").out
        project.config["mix"] = {
            "attributes": ["lines-0", "language-0"],
            "rules": [
                {"drop": "language.label is None", "name": "unidentified"},
                {"cut": "lines", "when": f"{alias} is None or {alias}.label == 'de'"},
            ],
            "output": {"format": "oscar", "path": str(project.out), "sentence_identifications": alias},
        }
        project.ok("mix", "--overwrite")
        values.append((project.values("language-0", "a.jsonl.gz"), project.output()[0]["metadata"]["identification"]))
    assert values[0] == values[1]


@pytest.mark.parametrize("executor", ["in_process", "local"])
def test_a_tagger_that_calls_exit_fails_its_shard(executor: str, project: Project) -> None:
    """Its status 0 is not that of a command that has done its work."""
    path = project.root / "leaving.py"
    path.write_text(
        '"""Leaves."""\nimport sys\nfrom toolkit import Document, Tagger\n\n'
        'class Leaving(Tagger):\n    """Leaves at a text."""\n\n    def tag(self, document: Document) -> int:\n'
        '        return sys.exit(0) if document.text == "go" else 1\n'
    )
    write_rows(project.documents / "a.jsonl.gz", [document("1", "go")])
    write_rows(project.documents / "b.jsonl.gz", [document("2", "stay")])
    project.config |= {"executor": {"type": executor}, "tag": {"leaving-0": f"{path}:Leaving"}}
    ran = project("tag").fails(1)
    assert "SystemExit: 0" in ran.out + ran.err
    assert project.values("leaving-0", "b.jsonl.gz") == [{"leaving": 1}]


@pytest.mark.parametrize(
    ("values", "got"), [("map(self.tag, batch)", "map"), ("{1}", "set"), ("{0: 1}", "dict"), ("'1'", "str")]
)
def test_a_batch_that_is_no_list_is_an_error_of_the_tagger(project: Project, values: str, got: str) -> None:
    (project.root / "lazy.py").write_text(
        "from toolkit import Document, Tagger\n"
        "class Lazy(Tagger):\n"
        "    def tag(self, document: Document) -> int:\n        return 1\n"
        f"    def tag_batch(self, batch):\n        return {values}\n"
    )
    write_rows(project.documents / "a.jsonl.gz", [document("1", "one")])
    project.config["tag"] = {"lazy-0": {"tagger": f"{project.root}/lazy.py:Lazy"}}
    project("tag").fails(1, f"a.jsonl.gz: tagger lazy: expected 1 values of tag_batch, got {got}; return a list")
