"""What the pages for authors of plugins show is run: through tag, mix, validate, stats, head and the others."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Run
from tests.pages import ROOT, assert_shown, blocks, carried_out, commands
from toolkit import Document, cli
from toolkit.plugins import default_name
from toolkit.tag.tagger import TAGGERS

FORMATS = "docs/writing-an-output-format.md"
A_TAGGER = "docs/writing-a-tagger.md"


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
        for page in (FORMATS, A_TAGGER)
        for block in blocks(page)
        if block.language == "python" and "import" in block.text
        for name in re.findall(rf"^class (\w+)\({base}\):$", block.text, re.MULTILINE)
    ]


OF_FORMATS, OF_TAGGERS = _plugins("Writer"), _plugins("Tagger")
PLUGINS = [*OF_FORMATS, *OF_TAGGERS]
OTHERS = [
    b.text
    for page in (FORMATS, A_TAGGER)
    for b in blocks(page)
    if b.language == "python" and b.text not in [text for _, text in PLUGINS] and "import" in b.text
]
ABOUT = (
    "about={name: pairs, description: of a page, license: 'https://spdx.org/licenses/CC0-1.0.html', "
    "url: 'https://example.org/pairs', creator: {name: somebody, type: Person}, date_published: '2026-01-01'}"
)
OPTIONS = {"Topic": ", model: lid.176.ftz", "EnglishLines": ", lines: lines-0"}
"""Options that the taggers of the page cannot do without."""


def _place(name: str) -> str:
    return f"my/{default_name(f'x:{name}')}.py:{name}"


@pytest.mark.parametrize("text", OTHERS, ids=range(len(OTHERS)))
def test_code_without_a_plugin_runs(text: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(here / "my"))
    exec(compile(text, "page", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("name", [name for name, _ in OF_TAGGERS])
def test_taggers_compute_their_examples_and_a_set(name: str, here: Path, run: Run) -> None:
    place = _place(name)
    class_ = TAGGERS.find(place)
    for example in class_.EXAMPLES if name not in OPTIONS else ():
        value = class_(**example.options).tag(Document(example.text))
        assert msgspec.json.decode(msgspec.json.encode(value)) == example.value
    entry = f"tag={{page-0: {{tagger: '{place}'{OPTIONS.get(name, '')}}}}}"
    ran = run("tag", "-c", "configs/quickstart.yaml", entry, "executor={type: in_process}", "--quiet", "--overwrite")
    assert ran.code == 0, ran.err
    assert run("validate", "-c", "configs/quickstart.yaml", entry, "mix={}", "--quiet").code in (0, 2)
    row = run("head", "data/quickstart/documents/cc/sample-00000.jsonl.gz", "-n", 1, "--json").json["documents"][0]
    assert row["attributes"]["page-0"].keys() == {default_name(place)}
    shutil.rmtree(here / "data/quickstart/attributes/page-0")
    shutil.rmtree(here / "data/quickstart/.toolkit/sets/page-0")


@pytest.mark.parametrize("name", [name for name, _ in OF_FORMATS])
def test_output_formats_are_mixed_and_read_by_every_command(name: str, here: Path, run: Run) -> None:
    out = f"data/out-{name}"
    output = f"output: {{format: '{_place(name)}', path: {out}}}"
    mix = f"{{attributes: [language-0], rules: [{{drop: language.label is None}}], {output}}}"
    configured = ("-c", "configs/quickstart.yaml", f"mix={mix}", "executor={type: in_process}", "--quiet")
    ran = run("mix", *configured)
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"43 documents, 42 kept (97.7 %) -> {out}")
    ran = run("validate", out, "--quiet")
    assert (ran.code, ran.out.rpartition(": ")[2]) == (0, "0 findings\n"), ran.out
    part = next(path for path in sorted((here / out).glob("[!.]*/*")) if path.is_file() and "_sha256" not in path.name)
    for target in (out, part.relative_to(here)):
        counted = run("stats", target, "--by", "label", "--json", "--quiet")
        assert counted.code == 0, counted.err
        shown = run("head", target, "-n", 1, "--json")
        assert shown.code == 0, shown.err
        assert shown.json["documents"][0]["text"]
    assert run("stats", out, "--quiet").out.splitlines()[-1].startswith("| all ")
    assert run("status", *configured).code == 0
    for command in ("card", "croissant"):
        ran = run(command, out, ABOUT, "--quiet")
        assert ran.code == 0, ran.err
    assert run("validate", out, "--quiet").out.endswith("0 findings\n"), "also with the descriptions beside it"
    ran = run("features", out)
    assert ran.code == (0 if name == "IdText" else 2)


def test_a_damaged_output_of_a_plugin_is_found(here: Path, run: Run) -> None:
    out = "data/out-damaged"
    mix = f"{{rules: [], attributes: [], output: {{format: '{_place('Framed')}', path: {out}}}}}"
    assert run("mix", "-c", "configs/quickstart.yaml", f"mix={mix}", "executor={type: in_process}", "--quiet").code == 0
    (part,) = (here / out).rglob("*.framed")
    part.write_bytes(part.read_bytes()[:-4])
    ran = run("validate", out, "--quiet")
    assert ran.code == 1
    assert "expected END as the last line, got another" in ran.out
    ran = run("stats", out, "--quiet")
    assert ran.code == 1
    assert "expected BEGIN and END around the texts, got others" in ran.out + ran.err


@pytest.mark.parametrize("page", [FORMATS, A_TAGGER])
def test_commands_print_what_the_page_shows(page: str, here: Path, run: Run) -> None:
    """Only the commands, and the configurations that they name; what they print has the lines that the page shows."""
    configuration = ""
    for block in blocks(page):
        if block.language == "yaml" and block.text.startswith("dataset:"):
            configuration = block.text
        for shown in commands(block):
            if not shown.command.startswith(("toolkit", "echo", "zcat")):
                continue
            if named := re.search(r"-c (\w+\.yaml)", shown.command):
                (here / named[1]).write_text(configuration, encoding="utf-8")
            assert_shown(shown.lines, carried_out(shown.command, here, run))
