"""What the pages for authors of plugins show is run: through tag, mix, validate, stats, head and the others."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pages import ROOT, assert_shown, blocks, carried_out, commands
from tests.pipeline.conftest import read_rows
from toolkit import cli
from toolkit.ingest.reader import READERS
from toolkit.make.stage import STAGES
from toolkit.mix.writer import WRITERS
from toolkit.plugins import default_name
from toolkit.tag.tagger import TAGGERS
from toolkit.testing import check_reader, check_stage, check_tagger, check_writer, readers, taggers, writers

FORMATS = "docs/writing-an-output-format.md"
INPUTS = "docs/writing-an-input-format.md"
A_TAGGER = "docs/writing-a-tagger.md"
A_STAGE = "docs/writing-a-stage.md"
THREE = (FORMATS, INPUTS, A_TAGGER, A_STAGE)


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset of the quickstart, and the plugins of the pages in ``my``."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "configs", folder / "configs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["run", "-c", "configs/quickstart.yaml", "processes=1", "--quiet"]) == 0
    (folder / "my").mkdir()
    for name, text in PLUGINS:
        (folder / "my" / f"{default_name(f'x:{name}')}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def here(quickstart: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(quickstart)
    return quickstart


def _plugins(base: str) -> list[tuple[str, str]]:
    """The classes that blocks define, each with its block; fragments, which import nothing, are none."""
    return [
        (name, block.text)
        for page in THREE
        for block in blocks(page)
        if block.language == "python" and "import" in block.text
        for name in re.findall(rf"^class (\w+)\({base}\):$", block.text, re.MULTILINE)
    ]


OF_FORMATS, OF_INPUTS, OF_TAGGERS = _plugins("Writer"), _plugins("Reader"), _plugins("Tagger")
OF_STAGES = _plugins("Stage")
PLUGINS = [*OF_FORMATS, *OF_INPUTS, *OF_TAGGERS, *OF_STAGES]
SAMPLES = {
    "Reviews": (b"r1\t2024-05-17\tA caf\xc3\xa9.\nr2\t2024-05-18\tToo loud.\n", ["A café.", "Too loud."]),
    "Rated": (b"5\tA caf\xc3\xa9.\n1\tToo loud.\n", ["A café.", "Too loud."]),
    "Fixed": (b"a" * 80 + b"b" * 80 + b"c" * 7, ["a" * 80, "b" * 80, "c" * 7]),
}
"""The bytes of a file of each input format of the page, and its texts."""
OTHERS = [
    b.text
    for page in THREE
    for b in blocks(page)
    if b.language == "python" and b.text not in [text for _, text in PLUGINS] and "import" in b.text
]
ABOUT = (
    "about={name: pairs, description: of a page, license: 'https://spdx.org/licenses/CC0-1.0.html', "
    "url: 'https://example.org/pairs', creator: {name: somebody, type: Person}, date_published: '2026-01-01'}"
)
OPTIONS = {"Topic": ", model: lid.176.ftz", "EnglishLines": ", lines: lines-0"}
"""Options that the taggers of the page cannot do without."""
MODELS = {"Topic": {"model": "lid.176.ftz"}}


def _place(name: str) -> str:
    return f"my/{default_name(f'x:{name}')}.py:{name}"


@pytest.mark.slow
@pytest.mark.parametrize("text", OTHERS, ids=range(len(OTHERS)))
def test_code_without_a_plugin_runs(text: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(here / "my"))
    names = {"__name__": "page"}
    exec(compile(text, "page", "exec"), names)
    assert names.keys() - {"__name__", "__builtins__"}, "a block defines or imports what it shows"


@pytest.mark.parametrize("name", [name for name, _ in OF_INPUTS])
def test_input_formats_are_ingested(name: str, here: Path, run: Run) -> None:
    content, texts = SAMPLES[name]
    check_reader(READERS.find(_place(name)), content, texts, new_process=False)
    (here / f"{name}.in").write_bytes(content)
    entry = f"dataset: data/{name}\ningest: [{{format: '{_place(name)}', from: {name}.in, source: pages}}]\n"
    (here / "pages.yaml").write_text(entry, encoding="utf-8")
    command = ("ingest", "-c", "pages.yaml", "executor={type: in_process}", "--quiet")
    ran = run(*command).succeeds()
    assert [row["text"] for row in read_rows(here / f"data/{name}/documents/pages/{name}.in.jsonl.gz")] == texts
    assert "(1 before)" in run(*command).out
    assert run("validate", f"data/{name}", "--quiet").code == 0
    place = here / "my" / f"{default_name(f'x:{name}')}.py"
    code = place.read_text(encoding="utf-8")
    place.write_text(code + "\nLATER = 1\n", encoding="utf-8")
    try:
        ran = run(*command)
    finally:
        place.write_text(code, encoding="utf-8")
    assert ran.code == 2
    assert f"the code of the format has changed: {place.name}" in ran.err


@pytest.mark.parametrize("name", [name for name, _ in OF_TAGGERS])
def test_taggers_compute_their_examples_and_a_set(name: str, here: Path, run: Run) -> None:
    place = _place(name)
    check_tagger(TAGGERS.find(place), MODELS.get(name), new_process=False)
    entry = f"tag={{page-0: {{tagger: '{place}'{OPTIONS.get(name, '')}}}}}"
    ran = run("tag", "-c", "configs/quickstart.yaml", entry, "executor={type: in_process}", "--quiet", "--overwrite")
    assert ran.code == 0, ran.err
    assert run("validate", "-c", "configs/quickstart.yaml", entry, "mix={}", "--quiet").code in (0, 2)
    row = run("head", "data/quickstart/documents/cc/sample-00000.jsonl.gz", "-n", 1, "--json").json["documents"][0]
    assert row["attributes"]["page-0"].keys() == {default_name(place)}
    shutil.rmtree(here / "data/quickstart/attributes/page-0")
    shutil.rmtree(here / "data/quickstart/.toolkit/sets/page-0")


def test_stages_make_sets_of_what_they_read(here: Path, run: Run) -> None:
    for name, _ in OF_STAGES:
        check_stage(STAGES.find(_place(name)), new_process=False)
    stage = f"make={{letters-0: {{stage: '{_place('Letters')}', lines: lines-0}}}}"
    ran = run("make", "-c", "configs/quickstart.yaml", stage, "executor={type: in_process}", "--json")
    assert ran.json["made"]["letters-0"]["documents"] == 43, ran.err
    row = run("head", "data/quickstart/documents/cc/sample-00000.jsonl.gz", "-n", 1, "--json").json["documents"][0]
    assert row["attributes"]["letters-0"].keys() == {"letters"}
    shutil.rmtree(here / "data/quickstart/attributes/letters-0")
    shutil.rmtree(here / "data/quickstart/.toolkit/sets/letters-0")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in OF_FORMATS])
def test_output_formats_are_mixed_and_read_by_every_command(name: str, here: Path, run: Run) -> None:
    check_writer(WRITERS.find(_place(name)), new_process=False)
    out = f"data/out-{name}"
    output = f"output: {{format: '{_place(name)}', path: {out}}}"
    mix = f"{{attributes: [language-0], rules: [{{drop: language.label is None}}], {output}}}"
    configured = ("-c", "configs/quickstart.yaml", f"mix={mix}", "executor={type: in_process}", "--quiet")
    ran = run("mix", *configured).succeeds()
    assert ran.out.startswith(f"43 documents, 42 kept (97.7 %) -> {out}")
    ran = run("validate", out, "--quiet")
    assert (ran.code, ran.out.rpartition(": ")[2]) == (0, "0 findings\n"), ran.out
    part = next(path for path in sorted((here / out).glob("[!.]*/*")) if path.is_file() and "_sha256" not in path.name)
    for target in (out, part.relative_to(here)):
        run("stats", target, "--by", "label", "--json", "--quiet").succeeds()
        shown = run("head", target, "-n", 1, "--json").succeeds()
        assert shown.json["documents"][0]["text"]
    assert run("stats", out, "--quiet").out.splitlines()[-1].startswith("| all ")
    assert run("status", *configured).code == 0
    for command in ("card", "croissant"):
        run(command, out, ABOUT, "--quiet").succeeds()
    assert run("validate", out, "--quiet").out.endswith("0 findings\n"), "also with the descriptions beside it"


@pytest.mark.slow
def test_plugins_do_the_same_in_another_process(here: Path) -> None:
    readers.check_in_new_process(*((READERS.find(_place(name))(), SAMPLES[name][0]) for name, _ in OF_INPUTS))
    writers.check_in_new_process(*(WRITERS.find(_place(name))() for name, _ in OF_FORMATS))
    taggers.check_in_new_process(
        *(taggers.configured_tagger(TAGGERS.find(_place(name)), MODELS.get(name)) for name, _ in OF_TAGGERS)
    )


def test_a_damaged_output_of_a_plugin_is_found(here: Path, run: Run) -> None:
    out = "data/out-damaged"
    mix = f"{{rules: [], attributes: [], output: {{format: '{_place('Framed')}', path: {out}}}}}"
    assert run("mix", "-c", "configs/quickstart.yaml", f"mix={mix}", "executor={type: in_process}", "--quiet").code == 0
    (part,) = (here / out).rglob("*.framed")
    part.write_bytes(part.read_bytes()[:-4])
    run("validate", out, "--quiet").fails(1).shows("expected END as the last line, got another")
    ran = run("stats", out, "--quiet").fails(1)
    assert "expected BEGIN and END around the texts, got others" in ran.out + ran.err


@pytest.mark.slow
@pytest.mark.parametrize("page", THREE)
def test_commands_print_what_the_page_shows(page: str, here: Path, run: Run) -> None:
    """Only the commands, and the configurations that they name; what they print has the lines that the page shows."""
    configuration = ""
    for block in blocks(page):
        if block.language == "yaml" and block.text.startswith("dataset:"):
            configuration = block.text
        for shown in commands(block):
            if not shown.command.startswith(("toolkit", "echo", "zcat", "printf")):
                continue
            if named := re.search(r"-c (\w+\.yaml)", shown.command):
                (here / named[1]).write_text(configuration, encoding="utf-8")
            assert_shown(shown.lines, carried_out(shown.command, here, run))


def test_a_package_offers_plugins_of_each_kind_by_entry_points(here: Path, tmp_path: Path) -> None:
    """Installed is what has a ``.dist-info`` on the path."""
    folder = tmp_path / "site"
    shutil.copytree(here / "my", folder / "my_plugins")
    found = {"readers": ("reviews", "Reviews"), "writers": ("tabbed", "Tabbed"), "taggers": ("shouting", "Shouting")}
    found["stages"] = ("translate", "Translate")
    info = folder / "my_plugins-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugins\nVersion: 1\n", encoding="utf-8")
    points = [f"[toolkit.{kind}]\n{name} = my_plugins.{name}:{class_}\n" for kind, (name, class_) in found.items()]
    (info / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    (tmp_path / "reviews.tsv").write_bytes(SAMPLES["Reviews"][0])
    (tmp_path / "all.yaml").write_text(
        "dataset: data\n"
        "ingest: [{format: reviews, from: reviews.tsv, source: r, language: en}]\n"
        "tag: {shouting-0: shouting}\n"
        "make: {english: {stage: translate, dataset: new}}\n"
        "mix: {output: {format: tabbed, path: out, compression: none}}\n",
        encoding="utf-8",
    )
    ran = subprocess.run(
        [sys.executable, "-m", "toolkit", "run", "-c", "all.yaml", "processes=1", "--quiet"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out/all/all.tsv").read_text(encoding="utf-8") == "r1\tA café.\nr2\tToo loud.\n"
    (made,) = (tmp_path / "new/documents").rglob("*.jsonl.gz")
    assert [row["text"] for row in read_rows(made)] == ["A CAFÉ.", "TOO LOUD."]
