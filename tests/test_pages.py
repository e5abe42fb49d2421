"""Pages whose blocks need more than the dataset of the quickstart: each runs as it stands, on data made here."""

import gzip
import json
import random
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests import pages, walk
from tests.conftest import ROOT, Run
from tests.crawls import make_crawl
from tests.learn.annotate.server import serving
from tests.pages import assert_shown, blocks, carried_out, commands
from tests.pipeline.conftest import document, read_rows, tree, write_rows
from tests.pipeline.test_annotation_files import annotation, write_lines
from tests.pipeline.test_train import BAD, GOOD, text
from tests.storage.web_server import Behaviour, web
from tests.text.encoders import models
from tests.text.encoders.classifiers import write_encoder
from toolkit import cli, reference
from toolkit.learn.annotate.annotator import Annotator
from toolkit.learn.annotate.answers import Annotation
from toolkit.text.encoders.config import ModelConfig, Outputs

pytestmark = pytest.mark.slow

ANNOTATING = "docs/annotating.md"


def make_raw(folder: Path) -> None:
    """Write the input that the page names."""
    (folder / "raw").mkdir()
    rows = [json.dumps({"id": str(i), "text": f"Text number {i}." + i * "!"}) for i in range(10)]
    (folder / "raw/a.jsonl").write_text("\n".join(rows) + "\n")


def test_annotating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    make_raw(tmp_path)
    configuration, session, mix, status, row, *_ = blocks(ANNOTATING)
    with serving() as server:
        text = configuration.text.replace("http://127.0.0.1:8000/v1", server.url)
        assert text != configuration.text
        (tmp_path / "crawl.yaml").write_text(text)
        for shown in [*commands(session), *commands(status)]:
            printed = carried_out(f"{shown.command} executor.type=in_process", tmp_path, run)
            assert_shown([line for line in shown.lines if line != "…"], printed)
        (tmp_path / "crawl.yaml").write_text(text + mix.text)
        assert "documents, " in carried_out("toolkit run -c crawl.yaml executor.type=in_process", tmp_path, run)
        assert len(server.bodies) == 4
    annotation = msgspec.json.decode(row.text, type=Annotation)
    assert msgspec.to_builtins(annotation) == json.loads(row.text)


def test_every_option_is_described() -> None:
    page = reference.pages()["configuration.md"]
    for field in msgspec.structs.fields(Annotator):
        assert f"| `{field.encode_name}` |" in page


# The page about annotation files shows what happens: its commands, run in order, on files such as it names.

ANNOTATION_FILES = "docs/annotation-files.md"


def make_annotations(folder: Path) -> None:
    """Write raw files and annotations such as the page names."""
    scores: dict[str, list[Any]] = {"de-0": [1, 2, 2], "de-1": [None, None, 9], "de-2": [0, 0, 1]}
    scores |= {"fr-0": [4, 4, 5], "fr-1": [3, 3, 3], "fr-2": [1, 1, 1]}
    for language in ("de", "fr"):
        ids = [id for id in scores if id.startswith(language)]
        raw, name = f"2014-41/{language}/00000", "annotations_org--model-7B_edu_en"
        write_lines(folder / f"raw/{raw}.jsonl", [{"id": id, "text": f"A text, {id}."} for id in ids])
        rows = [annotation(id, scores[id]) for id in reversed(ids)]
        write_lines(folder / f"exp/generated_annotations/{raw}__{name}.jsonl", rows)


def test_annotation_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    make_annotations(tmp_path)
    configuration, session, broken, written, *_ = page = blocks(ANNOTATION_FILES)
    (tmp_path / "crawl.yaml").write_text(configuration.text)
    for shown in commands(session):
        assert_shown(shown.lines, carried_out(f"{shown.command} executor.type=in_process", tmp_path, run))
    assert (tmp_path / written.text.strip()).exists()
    to_people, back = page[4:]
    for shown in commands(to_people):
        carried_out(f"{shown.command} executor.type=in_process", tmp_path, run)
    tasks, records = (json.loads((tmp_path / name).read_text()) for name in ("tasks.json", "records.json"))
    assert (len(tasks), records[0]["suggestions"]) == (6, {"edu": {"value": 2.0, "agent": "edu-0"}})
    for task in tasks:
        task["annotations"] = []
    tasks[0]["annotations"] = [
        {"result": [{"type": "choices", "from_name": "topics", "to_name": "text", "value": {"choices": ["a", "b"]}}]}
    ]
    records[0]["responses"] = {"comment": [{"value": "well written", "user_id": "u"}]}
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    (tmp_path / "answered.json").write_text(json.dumps(records))
    (tmp_path / "people.yaml").write_text("dataset: data/crawl\n" + back.text)
    carried_out("toolkit align -c people.yaml executor.type=in_process", tmp_path, run)
    bad = {"document_id": "a", "scores": [1, "x"]}
    write_lines(tmp_path / "exp/x__annotations_m_p_en.jsonl", [annotation("a", [1]), bad])
    (tmp_path / "bad.yaml").write_text("dataset: data/crawl\nalign: {bad-0: {from: exp/x__annotations_m_p_en.jsonl}}\n")
    assert_shown(
        broken.text.splitlines(), carried_out("toolkit align -c bad.yaml executor.type=in_process", tmp_path, run, 1)
    )


# The page on fine-tuned classifiers, run: a model, its set, figures, a mix.

CLASSIFIERS = "docs/classifiers.md"


def test_the_commands_of_the_page_fine_tune_an_encoder_and_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    monkeypatch.chdir(tmp_path)
    write_encoder(tmp_path / "encoder", head=False, words=[*GOOD, *BAD])
    chance = random.Random(3)
    rows = [(chance.random(), i) for i in range(200)]
    found = [document(str(i), text(chance, share), score=round(share * 5)) for share, i in rows]
    write_rows(tmp_path / "edu/a.jsonl", found)
    configurations = [block.text for block in pages.blocks(CLASSIFIERS) if block.language == "yaml"]
    for name, content in zip(("classifier.yaml", "tagged.yaml"), configurations, strict=False):
        (tmp_path / name).write_text(content)
    printed = ""
    for block in pages.blocks(CLASSIFIERS):
        for shown in pages.commands(block) if block.language == "sh" else []:
            if shown.command.startswith("toolkit") and "ray" not in shown.command:
                printed += pages.carried_out(shown.command, tmp_path, run)
    assert "spearman" in printed
    assert [*read_rows(next((tmp_path / "data/educational").rglob("*.jsonl.gz")))]


def test_the_line_of_a_configuration_is_enough() -> None:
    line = '{"id2label": {"0": "low", "1": "high"}}'
    assert line in pages.text_of(CLASSIFIERS).replace('"1":\n"high"', '"1": "high"')
    config = json.loads(line)
    assert Outputs.of(ModelConfig(**config)).labels == ["low", "high"]


# The page on embeddings, run: embeddings, a head, its set, a mix, and the array that Python reads.

EMBEDDINGS = "docs/embeddings.md"


def make_embedded(folder: Path) -> None:
    """Write the encoder and the documents that the page names."""
    models.bert(folder / "encoder")
    chance = random.Random(3)
    rows = [(chance.random(), i) for i in range(400)]
    found = [document(str(i), text(chance, share), score=round(share * 5)) for share, i in rows]
    write_rows(folder / "edu/a.jsonl", found)


def test_the_commands_of_the_page_make_a_head_and_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers", reason="the extra tokens")
    monkeypatch.chdir(tmp_path)
    make_embedded(tmp_path)
    blocks = pages.blocks(EMBEDDINGS)
    configurations = [block.text for block in blocks if block.language == "yaml"]
    for name, content in zip(("edu.yaml", "mix.yaml"), configurations, strict=True):
        (tmp_path / name).write_text(content)
    printed = ""
    for block in blocks:
        for shown in pages.commands(block) if block.language == "sh" else []:
            if shown.command.startswith("toolkit"):
                printed += pages.carried_out(shown.command, tmp_path, run)
    assert "spearman" in printed
    kept = read_rows(next((tmp_path / "data/educational").rglob("*.jsonl.gz")))
    assert 0 < len(kept) < 400

    (script,) = (block.text for block in blocks if block.language == "python")
    (tmp_path / "array.py").write_text(script)
    capfd.readouterr()
    runpy.run_path("array.py")
    assert capfd.readouterr().out == "(400, 8) float16 ['0', '1', '2']\n"

    duckdb = pytest.importorskip("duckdb")
    (query,) = (block.text for block in blocks if block.language == "sql")
    (row, *_) = duckdb.sql(query.replace("[384]", "[8]")).fetchall()
    assert row[0] == "0"
    assert len(json.loads(json.dumps(row[1]))) == 8


# The example of the page about locks runs as it stands.


def test_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks("docs/locks.md"):
        if block.language == "yaml":
            (tmp_path / "letters.yaml").write_text("executor: {type: in_process}\n" + block.text)
            continue
        for shown in commands(block):
            refused = any(line.startswith("error:") for line in shown.lines)
            assert_shown(shown.lines, carried_out(shown.command, tmp_path, run, status=2 if refused else 0))
    assert (tmp_path / "out").exists()


# The page on a model of one's own, run: version 1, a look, version 2, and which files that writes.

OWN_MODEL = Path(__file__).parent.parent / "docs" / "own-model.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def masked(line: str) -> str:
    """Return a line without its numbers: two models that are trained alike differ a little."""
    return re.sub(r"[-\s]+", " ", re.sub(r"\d[\d.,]*", "#", line)).strip()


def test_a_second_version_writes_its_own_attributes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = OWN_MODEL.read_text(encoding="utf-8").partition("## Compare two versions of a tagger")[0]
    blocks = BLOCK.findall(page)
    (script,) = (text for language, text in blocks if language == "python")
    (tmp_path / "make.py").write_text(script, encoding="utf-8")
    written_here = [content for language, content in blocks if language == "yaml"]
    for name, content in zip(["forum.yaml", "forum-1.yaml"], written_here, strict=True):
        (tmp_path / name).write_text(content, encoding="utf-8")
    written: dict[str, set[str]] = {}
    shown = ""
    for language, block in blocks:
        if language == "sh":
            shown = ""
            for line in block.splitlines():
                before = tree(tmp_path / "data")
                if line == "python make.py":
                    runpy.run_path("make.py")
                else:
                    assert cli.main([*line.split()[1:], "--quiet"]) == 0
                after = tree(tmp_path / "data")
                written[line] = {path for path in after.keys() | before.keys() if after.get(path) != before.get(path)}
                shown += capsys.readouterr().out
        elif language == "text":
            there = {masked(line) for line in shown.splitlines()}
            told = [line for line in block.splitlines() if "…" not in line and "->" not in line]
            assert [line for line in told if masked(line) not in there] == [], shown
    again = written["toolkit tag -c forum-1.yaml"]
    assert again == {f"forum/attributes/toxicity-1/forum-{shard}.jsonl.gz" for shard in range(4)}
    looking = [
        line for line in written if any(word in line for word in ("--dry-run", "--explain", "--sample", "ompare"))
    ]
    assert len(looking) == 5
    assert not any(written[line] for line in looking)
    kept = [row["text"] for row in read_rows(tmp_path / "data/clean/documents/documents.jsonl.gz")]
    assert 3500 < len(kept) < 3750
    assert not any("Nobody wants you here" in text for text in kept), "which the first version has not learnt"
    assert any("idiot proof" in text for text in kept)


# The page on publishing and fetching shows what happens.


def test_publishing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """All commands on local folders, in order."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    pages.carried_out("toolkit run -c configs/quickstart.yaml processes=1", tmp_path, run)
    blocks = pages.blocks("docs/publishing.md")
    with (tmp_path / "configs" / "quickstart.yaml").open("a", encoding="utf-8") as configuration:
        configuration.writelines(block.text for block in blocks if block.language == "yaml")
    commands = [shown for block in blocks for shown in pages.commands(block)]
    local = [shown for shown in commands if "://" not in shown.command]
    assert len(local) >= 4
    for shown in local:
        pages.assert_shown(shown.lines, pages.carried_out(shown.command, tmp_path, run))


# The page about a corpus of a small language runs as it stands, on a crawl that is made here.


def test_a_small_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    crawl = make_crawl(tmp_path / "www")
    wanted = {row["url"] for row in crawl.wanted() if row["fetch_status"] == 200}
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yaml_, *others = blocks("docs/small-language.md")
    config = yaml.safe_load(yaml_.text)
    behaviour = Behaviour()
    with web(crawl.root, behaviour) as url:
        config["ingest"][0]["base_url"] = url
        Path("breton.yaml").write_text(json.dumps(config | {"executor": {"type": "in_process"}}))
        said = []
        for block in others:
            for each in commands(block) if block.language == "sh" else []:
                ran = run(*each.command.split()[1:]).succeeds()
                said.append(ran.out)
    shown = next(block.text for block in others if block.language == "text").strip()
    assert shown in said[0], said[0]
    rows = [row for path in Path("data/breton-corpus").rglob("*.jsonl.gz") for row in read_rows(path)]
    assert {row["metadata"]["warc_headers"]["warc-target-uri"] for row in rows} == wanted


# The queries of the page about SQL run as they stand, on the quickstart's sample.


def test_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    count = 0
    for block in blocks("docs/sql.md"):
        if block.language == "python":
            exec(compile(block.text, "docs/sql.md", "exec"), {})
        if block.language not in ("sh", "text"):
            continue
        joined = re.sub(r"\n    +", " ", block.text)  # a query of several lines is one argument
        for shown in commands(block._replace(text=joined)):
            refused = any(line.startswith("error:") for line in shown.lines)
            assert_shown(shown.lines, carried_out(shown.command, tmp_path, run, status=2 if refused else 0))
            count += 1
    assert count > 10
    assert (tmp_path / "data" / "exported" / "language-0" / "cc" / "sample-00001.parquet").exists()


# The walk from labels to a corpus: every block of the page runs, and a second version adds a model and a set alone.

WORDS = {
    "en": (["river", "mountain", "lesson", "science"], ["click", "buy", "cheap", "casino"], "the of and to in that is"),
    "es": (
        ["río", "montaña", "lección", "ciencia"],
        ["clic", "compra", "barato", "casino"],
        "el de que los las por con",
    ),
    "sr": (["река", "планина", "лекција", "наука"], ["кликни", "купи", "јефтино", "казино"], "је да се на за су од"),
}

TFIDF = """
import json, toolkit
with open("tfidf.jsonl", "w") as file:
    for row in toolkit.Dataset("data/walk").joined("splits-0"):
        if row.document.source == "edu":
            file.write(json.dumps({"id": row.document.id, "tfidf": len(row.document.text) / 100}) + "\\n")
"""


def walk_text(chance: random.Random, language: str, share: float) -> str:
    good, bad, common = WORDS[language]
    found = [chance.choice(good if chance.random() < share else bad) for _ in range(20)]
    return " ".join(word for pair in zip(found, chance.choices(common.split(), k=20), strict=True) for word in pair)


def make_walk(folder: Path) -> None:
    """Write files of the names and fields that the page has."""
    chance = random.Random(2)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, language, count in (
        ("fineweb_edu_annotated_1000", "en", 160),
        ("dclm_majority_data", "en", 100),
        ("fineweb2_spa_Latn", "es", 100),
        ("fineweb2_srp_Cyrl", "sr", 100),
    ):
        for i in range(count):
            share = (i % 5) / 4
            row: dict[str, Any] = {"text": f"{walk_text(chance, language, share)} {i}"}
            if "edu" in name:
                row |= {"id": str(i), "scores": {"score": i % 5}}
            elif "dclm" in name:
                row |= {"label": int(share > 0.5)}
            else:
                row |= {"id": f"{language}-{i}", "filter_reason": None if share > 0.5 else "short"}
            rows.setdefault(name, []).append(row)
    (folder / "quality").mkdir()
    for name, found in rows.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
        (folder / "quality" / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


def test_the_page_runs_from_labels_to_a_corpus_and_a_second_version(tmp_path: Path) -> None:
    make_walk(tmp_path)
    without, instead = [walk.ENCODER], {"tfidf.py": TFIDF}
    if walk.has(*walk.PACKAGES):
        words = [word for good, bad, common in WORDS.values() for word in (*good, *bad, *common.split())]
        write_encoder(tmp_path / "encoder", head=False, words=words)
        (larger,) = (block.text for block in pages.blocks(walk.PAGE) if block.text.startswith(f"# {walk.LARGER}"))
        instead[walk.LARGER] = larger.replace("max_tokens: 128", "max_tokens: 64")
    else:
        without.append(walk.LARGER)
    printed = dict(walk.carried_out(tmp_path, instead, without))
    shown = "".join(printed.values())
    assert (shown.count("trained: linear"), shown.count("trained: fasttext")) == (4, 3)
    assert shown.count("trained: head") == shown.count("trained: encoder") == walk.has(*walk.PACKAGES)
    (judged,) = (said for commands, said in printed.items() if "$EXPECTED" in commands)
    assert judged.count("judged; numbers that predict") == 5
    assert "A to source only" in judged, "there are two sources in FineWeb-2's pages"
    (listed,) = (said for commands, said in printed.items() if "diff" in commands)
    added = {line[2:] for line in listed.splitlines() if line[:1] in "<>"}
    files = {path.rpartition("/")[0] for path in added}
    assert files == {"data/walk/models/edu-linear-2"} | {
        f"data/walk/attributes/edu-2/{source}" for source in ("edu", "dclm", "spanish", "serbian")
    }
    assert "<" not in {line[:1] for line in listed.splitlines()}
    assert (tmp_path / "data/better").exists()


def test_test_documents_are_hidden_from_all_models() -> None:
    """Each entry that the page trains takes its split from the sample, and leaves out the test split."""
    found = [block.text for block in pages.blocks(walk.PAGE) if "\ntrain:" in block.text]
    assert len(found) == 3
    for page in found:
        assert page.count("task:") == page.count("split:") == page.count("*known") + page.count('!= "test" else None')
