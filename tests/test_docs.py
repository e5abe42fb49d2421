"""The documentation says what the code does."""

import gzip
import json
import re
import runpy
import shutil
import tomllib
from pathlib import Path

import msgspec
import pytest
import yaml

from tests import pages, sizes
from tests.conftest import Ran, Run
from toolkit import cli, command_options, reference
from toolkit.config import settings
from toolkit.data.dataset import Dataset
from toolkit.ingest.ingest_config import Common
from toolkit.ingest.reader import READERS
from toolkit.interop.dolma import is_dolma
from toolkit.interop.dolma.mixer import read_mixer
from toolkit.mix.settings import OutputSettings, read_section
from toolkit.mix.writer import WRITERS
from toolkit.rules.text_edits import name_edits
from toolkit.tag import tagger_docs
from toolkit.tag.tagger import TAGGERS
from toolkit.whole_corpus.kind import KINDS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
CONFIGURATIONS = sorted((ROOT / "configs").glob("*.yaml"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
REFERENCE = reference.pages()
"""The pages that Sphinx makes from the code; git ignores their folder."""


def _text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for path in [*PAGES, ROOT / "README.md"]:
        for number, (name, text) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8"))):
            if name == language:
                found.append((f"{path.name}-{number}", text))
    return found


def _anchors(text: str) -> set[str]:
    prose = BLOCK.sub("", text)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_reference_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("A page of a tagger that is gone.", encoding="utf-8")
    reference.write(tmp_path)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    assert written == REFERENCE.keys()
    for name, text in REFERENCE.items():
        assert _lost(text, ROOT / "docs" / "reference" / name) == []


BYTES = re.compile(r"^(\S+ +\d+) +[\d,]+ +[\d,]+ +(\d+)$", re.MULTILINE)
PROBABILITY = re.compile(r"(\d\.\d{4})\d+")


def _anywhere(text: str) -> str:
    """The text without what depends on the processor: bytes as stored, and the last digits of probabilities."""
    return PROBABILITY.sub(r"\1", BYTES.sub(r"\1 \2", text))


@pytest.mark.slow
def test_the_quickstart_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """All its commands, in order, and all that it shows of what they print."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    page = pages.blocks("docs/quickstart.md")
    printed = ""
    for number, block in enumerate(page):
        if block.language == "yaml":
            source = yaml.safe_load((tmp_path / "configs" / "quickstart.yaml").read_text(encoding="utf-8"))
            changed = yaml.safe_load(block.text)
            other = source | {"tag": changed["tag"], "mix": source["mix"] | changed["mix"]}
            (tmp_path / "other.yaml").write_text(yaml.safe_dump(other, sort_keys=False), encoding="utf-8")
            printed = pages.carried_out("toolkit run -c other.yaml", tmp_path, run)
        for shown in pages.commands(block):
            if not shown.command.startswith("pip install"):
                fails = page[number + 1].text.startswith("error:")
                into = "cd data/quickstart/oscar/fr && " if shown.command.startswith("zcat") else ""
                printed = pages.carried_out(into + shown.command, tmp_path, run, 2 if fails else 0)
                pages.assert_shown(shown.lines, printed)
        if block.language == "text":
            if "was there already" in block.text:
                pages.carried_out("toolkit mix -c configs/quickstart.yaml", tmp_path, run)
                printed = pages.carried_out("toolkit mix -c configs/quickstart.yaml", tmp_path, run)
            pages.assert_shown(_anywhere(block.text).splitlines(), _anywhere(printed))


@pytest.mark.slow
def test_the_readme_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    first, report, check, configuration, *_ = pages.blocks("README.md")
    assert "toolkit run -c configs/quickstart.yaml" in first.text
    (tmp_path / "readme.yaml").write_text(configuration.text, encoding="utf-8")
    for name in ("readme.yaml", "configs/quickstart.yaml"):  # the file has four more annotations
        printed = pages.carried_out(f"toolkit run -c {name} processes=1", tmp_path, run)
    pages.assert_shown(report.text.splitlines(), printed)
    for shown in pages.commands(check):
        into = "cd data/quickstart/oscar/fr && " if shown.command.startswith("zcat") else ""
        pages.assert_shown(shown.lines, pages.carried_out(into + shown.command, tmp_path, run))


def test_every_command_is_described() -> None:
    assert [n for n in command_options.names() if f"\n## toolkit {n}\n" not in REFERENCE["commands.md"]] == []


def test_every_tagger_is_described() -> None:
    """In the list, and in full on the page that the site has."""
    missing = []
    for name in reference.built_in(TAGGERS):
        page, class_ = REFERENCE[f"taggers/{name}.md"], TAGGERS.find(name)
        parts = [f"| `{part.name}` |" for part in tagger_docs.values(class_) if part.name]
        parts += [f"| `{option.name}` | {option.type}" for option in tagger_docs.options(class_)]
        missing += [(name, part) for part in parts if part not in page]
        missing += [(name, "list")] if f"\n### {name}\n" not in REFERENCE["taggers.md"] else []
    assert missing == []


def test_every_format_is_described() -> None:
    page = REFERENCE["formats.md"]
    for word, names in (("Input", reference.built_in(READERS)), ("Output", reference.built_in(WRITERS))):
        for name in names:
            assert f"\n### {word} format {name}\n" in page


def test_every_setting_is_described() -> None:
    page = REFERENCE["configuration.md"] + REFERENCE["formats.md"]
    for type_ in (settings.Config, Common, OutputSettings):
        for field in msgspec.structs.fields(type_):
            assert f"`{field.encode_name}`" in page


def test_defaults_are_shown_as_they_are_and_options_by_section() -> None:
    page = REFERENCE["configuration.md"]
    assert '| `fields` | list of text | `["text"]` |' in page
    assert "| `keywords` | list of text | `[]` |" in page
    assert page.count("| `against` | text, mapping or list |") == len(
        [k for k in KINDS.names() if KINDS.find(k).AGAINST]
    )
    assert page.index("## dedup: passages") < page.index("## sample") < page.index("## calibrate: map")


@pytest.mark.parametrize(("name", "text"), _blocks("yaml"))
def test_yaml_in_pages_is_a_configuration(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data")
    source = settings.parse(text, name)
    if is_dolma(source):
        assert read_mixer(source).configs
        return
    found = settings.convert(source, settings.Config)
    if "output" in found.mix and "my/" not in text:  # of a reader's own files there are none here
        name_edits(source)
        read_section(source.at("mix"), str(ROOT), lambda: Dataset("documents", "attributes"))


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.name)
def test_configurations_are_configurations(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# "), "the first line says what it is"
    settings.convert(settings.parse(text, path.name), settings.Config)


def test_python_in_pages_compiles() -> None:
    assert [name for name, text in _blocks("python") if not compile(text, name, "exec").co_code] == []


def _leads_somewhere(link: str, path: Path) -> bool:
    file, _, anchor = link.partition("#")
    target = (path.parent / file).resolve() if file else path
    made = ROOT / "docs" / "reference"
    found = REFERENCE.get(target.relative_to(made).as_posix()) if target.is_relative_to(made) else None
    if found is None and not target.exists():
        return False
    return not anchor or anchor in _anchors(found or target.read_text(encoding="utf-8"))


def _lost(text: str, path: Path) -> list[str]:
    """The links that lead nowhere."""
    links = [link for link in LINK.findall(BLOCK.sub("", text)) if "://" not in link]
    return [link for link in links if not _leads_somewhere(link, path)]


def test_links_lead_somewhere() -> None:
    lost = {path.name: _lost(path.read_text(encoding="utf-8"), path) for path in [*PAGES, ROOT / "README.md"]}
    assert {name: links for name, links in lost.items() if links} == {}


def test_every_page_is_listed_says_its_purpose_first_and_has_short_lines() -> None:
    faults = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        title, first, *_ = text.split("\n\n")
        if path.name != "index.md" and f"({path.name})" not in _text("index.md"):
            faults.append(f"{path.name} is not listed")
        if not (title.startswith("# ") and re.match(r"This page |On this page |`toolkit \w+` ", first)):
            faults.append(f"{path.name}: say what the page is for")
        prose = [line for line in text.splitlines() if not line.startswith("|")]  # rows of tables cannot be cut
        faults += [f"{path.name}: {line}" for line in prose if len(line) > 120]
    assert faults == []


@pytest.mark.slow
def test_the_site_has_each_page_once_and_nothing_from_the_web() -> None:
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    groups = conf["navigation"](_text("index.md"))
    listed = [page for pages_of_group in groups.values() for page in pages_of_group]
    made = [f"reference/{name.removesuffix('.md')}" for name in REFERENCE if "/" not in name]
    assert sorted(listed) == sorted([*made, *(path.stem for path in PAGES if path.name != "index.md")])
    assert all(groups.values())
    refused = conf["FROM_THE_WEB"].search
    assert refused('<script async src="https://cdn.example/x.js"></script>')
    assert refused('<link rel="stylesheet" href="//fonts.example/a.css"/>')
    assert refused('<img alt="" src=https://badge.example/a.svg>')
    assert not refused('<a href="https://docs.ray.io">Ray</a><script src="_static/x.js"></script>')


def test_every_extra_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = _text("configuration.md").split("\n## Extras\n")[1].split("\n## ")[0]
    named = {
        name for row in re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE) for name in row.strip("`").split("`, `")
    }
    assert named == project["optional-dependencies"].keys() - {"docs", "fuzz", "test"}


@pytest.mark.slow
def test_the_walk_through_a_threshold_shows_what_happens(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wet").mkdir()
    for name in ("hplt-sample200", "htmlpool-real"):
        shutil.copy(shared / "wet" / f"{name}.warc.wet.gz", tmp_path / "wet")
    monkeypatch.chdir(tmp_path)
    blocks = [(language, text) for language, text in BLOCK.findall(_text("iterating.md"))]
    first, second = (text for language, text in blocks if language == "yaml")
    (tmp_path / "pages.yaml").write_text(first)
    (tmp_path / "by-language.yaml").write_text(first.partition("mix:\n")[0] + second)
    shown = ""
    for language, text in blocks:
        if language == "sh":
            for line in text.splitlines():
                assert cli.main([*line.split()[1:], "--quiet"]) == 0
            shown = capsys.readouterr().out
        elif language == "text":
            assert [line for line in text.splitlines() if line not in (*shown.splitlines(), "…")] == []


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset of the quickstart, and the set ``pii-0`` beside those that it has."""
    folder = tmp_path_factory.mktemp("tagged")
    shutil.copytree(ROOT / "configs", folder / "configs")
    quickstart = folder / "configs" / "quickstart.yaml"  # with a sample of its own, from which a test takes something
    quickstart.write_text(quickstart.read_text(encoding="utf-8").replace("recipe:", "configs/"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in ("ingest", "tag"):
            more = ["tag.pii-0=emails"] if command == "tag" else []
            arguments = [command, "-c", "configs/quickstart.yaml", "processes=1", *more, "--quiet"]
            assert cli.main(arguments) == 0
    return folder


def _mixed(rules: list[dict[str, object]], run: Run) -> Ran:
    """A dry run of these rules."""
    mix = {"attributes": ["lines-0", "language-0", "shape-0"], "rules": rules}
    mix["output"] = {"format": "dolma", "path": "data/out"}
    Path("rules.yaml").write_text(yaml.safe_dump({"dataset": "data/quickstart", "mix": mix}), encoding="utf-8")
    return run("mix", "-c", "rules.yaml", "--dry-run", "--quiet", "processes=1")


@pytest.mark.parametrize(("name", "text"), [pair for pair in _blocks("yaml") if pair[0].startswith("rules.md")])
def test_the_rules_that_the_page_shows_hold(
    name: str, text: str, tagged: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tagged)
    Path("page.yaml").write_text(f"dataset: data/quickstart\n{text}", encoding="utf-8")
    ran = run("mix", "-c", "page.yaml", "--quiet", "processes=1")
    assert ran.code == 0, (name, ran.err)


def test_the_streams_that_the_page_shows_hold(tagged: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tagged)
    (text,) = (text for _, text in _blocks("yaml") if "streams:" in text and "data/wiki" in text)
    Path("page.yaml").write_text(re.sub("data/(crawl|wiki)", "data/quickstart", text), encoding="utf-8")
    run("mix", "-c", "page.yaml", "--quiet", "processes=1", "duplicate_ids=allow").succeeds()


VERDICT = re.compile(r"^\| (`drop: .+`) \| (refused|accepted)", re.MULTILINE)


def test_rules_are_refused_as_the_page_says(tagged: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tagged)
    page = _text("rules.md")
    verdicts = VERDICT.findall(page)
    assert len(verdicts) == 7
    for row, verdict in verdicts:
        ran = _mixed([{"drop": each} for each in re.findall(r"`drop: ([^`]+)`", row)], run)
        assert ran.code == (2 if verdict == "refused" else 0), (row, ran.err)


SHOWN_IN_LISTS = re.compile(r"^  ```text\n(.*?)^  ```$", re.MULTILINE | re.DOTALL)


def test_what_concepts_says_of_stale_and_misaligned_sets(
    tagged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """And of an input that is to go: its documents, and the record that the error names."""
    shutil.copytree(tagged, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    stale, misaligned = (text.splitlines() for text in SHOWN_IN_LISTS.findall(_text("concepts.md")))
    whole = ("-c", "configs/quickstart.yaml", "processes=1", "--quiet")
    attributes = tmp_path / "data/quickstart/attributes/shape-0/cc/sample-00000.jsonl.gz"
    rows = gzip.decompress(attributes.read_bytes()).splitlines(keepends=True)
    rows[5], rows[6] = rows[6], rows[5]
    attributes.write_bytes(gzip.compress(b"".join(rows)))
    ran = run("mix", *whole).fails(1)
    pages.assert_shown(misaligned, ran.err)
    assert run("tag", *whole).code == 0

    other = {"dataset": "data/quickstart", "tag": {"lines-0": {"tagger": "line_language", "min_prob": 0.9}}}
    Path("other.yaml").write_text(yaml.safe_dump(other), encoding="utf-8")
    assert run("tag", "-c", "other.yaml", "--overwrite", "processes=1", "--quiet").code == 0
    ran = run("validate", *whole).fails(1)
    pages.assert_shown(stale, ran.out)
    assert run("tag", *whole).code == 2
    assert run("tag", *whole, "--overwrite").code == 0

    for name in ("configs/sample/sample-00001.warc.wet.gz", "data/quickstart/documents/cc/sample-00001.jsonl.gz"):
        Path(name).unlink()
    key = "cc/sample-00001.warc.wet.gz"
    assert run("ingest", *whole).code == 0
    run("tag", *whole).fails(1, f"`toolkit clean --forget {key}`")
    assert run("clean", "--forget", key, *whole).code == 0
    assert [run(command, *whole).code for command in ("tag", "mix", "validate")] == [0, 0, 0]
    ran = run("clean", "--forget", key, *whole)
    assert (ran.code, "expected an input that was ingested" in ran.err) == (2, True)


def test_formats_shows_what_is_on_disk(tagged: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The schema of a set, an attribute row, a line of OSCAR, labels with probabilities."""
    monkeypatch.chdir(tagged)
    assert run("mix", "-c", "configs/quickstart.yaml", "--quiet", "processes=1").code == 0
    page = pages.blocks("docs/formats.md")
    data, corpus = Path("data/quickstart"), Path("data/quickstart/oscar")

    (shown,) = (json.loads(b.text) for b in page if b.language == "json" and '"reads"' in b.text)
    schema = json.loads((data / ".toolkit/sets/shape-0/schema.json").read_bytes())
    noise = {key: schema["keys"]["noise"][key] for key in ("type", "settings")}
    assert shown == {"version": schema["version"], "keys": {"noise": noise}, "reads": schema["reads"]}
    (row,) = (json.loads(b.text) for b in page if b.text.startswith('{"source": "cc"'))
    there = json.loads(
        gzip.decompress((data / "attributes/shape-0/cc/sample-00000.jsonl.gz").read_bytes()).splitlines()[0]
    )
    assert row["attributes"]["noise"] == there["attributes"]["noise"]

    lines = [gzip.decompress(path.read_bytes()).decode() for path in sorted(corpus.glob("*/*.jsonl.gz"))]
    line = next(b.text for b in page if b.text.startswith('{"content":"Warung'))
    metadata = re.sub(r"\n\s*", "", line.partition(' "metadata":')[2])
    assert _anywhere(metadata) in _anywhere("".join(lines))

    found = [json.loads(each)["metadata"]["identification"] for text in lines for each in text.split("\n") if each]
    first = [f"{label}\t{prob}" for label, prob in sorted((each["label"], each["prob"]) for each in found)][:3]
    (listed,) = (b.text for b in page if "@tsv" in b.text)
    assert _anywhere(listed).endswith(_anywhere("".join(f"{each}\n" for each in first)))


def test_the_pages_stay_as_short_as_they_are() -> None:
    assert sum(path.stat().st_size for path in PAGES) <= 600_000


def test_contributing_has_each_folder_of_the_toolkit_with_a_budget() -> None:
    files = [path for package in sizes.PRODUCT for path in (ROOT / package).rglob("*.py")]
    folders = {sizes.folder(path.relative_to(ROOT).as_posix()) for path in files}
    assert {*sizes.budgets()} == folders | {"tests"}
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    inner = [name.removeprefix("toolkit/") for name in folders if name.startswith("toolkit/") and "*" not in name]
    assert [name for name in inner if f"`{name}/`" not in page] == []
