"""Each configuration of the page about one's own data runs as it stands there, on small files of the form it names."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run
from tests.pages import blocks, carried_out, commands

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

PAGE = "docs/bring-your-own-data.md"
EXAMPLES = [block.text for block in blocks(PAGE) if block.language == "yaml" and not block.unrun]
ENGLISH = "The library opens at nine in the morning and it closes at six in the evening, on every day of the week."
GERMAN = "Die Bibliothek öffnet um neun Uhr am Morgen und schließt um sechs Uhr am Abend, an jedem Tag der Woche."
HEADER = "---\nconfigs:\n- config_name: sample\n  data_files: [{split: train, path: sample/*.parquet}]\n---\n"


def _objects(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


def make(folder: Path) -> None:
    """Writes the inputs that the page names."""
    (folder / "hub/fineweb/sample").mkdir(parents=True)
    (folder / "hub/fineweb/README.md").write_text(HEADER)
    pages = [
        {"text": ENGLISH, "id": "1", "url": "u1", "language": "en", "language_score": 0.9},
        {"text": GERMAN, "id": "2", "url": "u2", "language": "de", "language_score": 0.8},
        {"text": ENGLISH, "id": "3", "url": "u3", "language": None, "language_score": None},
    ]
    pq.write_table(pa.Table.from_pylist(pages), folder / "hub/fineweb/sample/000.parquet")
    reviews = [{"review": f"{ENGLISH} {stars}", "stars": stars, "user": "a"} for stars in (1, 5, 5, None)]
    (folder / "saved/reviews/train").mkdir(parents=True)
    (folder / "saved/reviews/dataset_dict.json").write_text('{"splits": ["train"]}')
    (folder / "saved/reviews/train/state.json").write_text('{"_data_files": [{"filename": "data-0.arrow"}]}')
    table = pa.Table.from_pylist(reviews)
    path = str(folder / "saved/reviews/train/data-0.arrow")
    with pa.OSFile(path, "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    with (folder / "news.csv").open("w", newline="") as out_text:
        writer = csv.writer(out_text)
        writer.writerow(["body", "date", "year", "section"])
        writer.writerow([f"{ENGLISH}\n{ENGLISH}", "2021-01-01", "2021", "city"])
        writer.writerow([ENGLISH, "2019-01-01", "2019", "city"])
        writer.writerow([ENGLISH, "2022-01-01", "2022", "sports"])
        writer.writerow([ENGLISH, "", "", "city"])
    for name in ("books/a.txt", "books/deep/b.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{ENGLISH}\n\n{ENGLISH}\n{ENGLISH}\n")
    (folder / "books/tiny.txt").write_text("tiny\n")
    meta = [{"language": "en", "source_url": f"https://{host}/x"} for host in ("a.org", "b.org")]
    rows = [{"raw_content": ENGLISH, "doc_id": str(i), "meta": json.dumps(each)} for i, each in enumerate(meta)]
    _objects(folder / "pajama/0.jsonl.gz", rows)
    posts = [{"id": str(i), "text": f"{ENGLISH} {i}", "likes": i, "by": None} for i in range(5)]
    (folder / "forum").mkdir()
    (folder / "forum/a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in posts))
    (folder / "my").mkdir()
    (folder / "my/takedowns.txt").write_text("b.org\n")


@pytest.mark.slow
def test_each_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """In order: the last one reads what the second has written. Each shows its first documents before it runs."""
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    kept: list[tuple[int, int]] = []
    for text in EXAMPLES:
        assert len(text.splitlines()) <= 12
        (tmp_path / "own.yaml").write_text(text)
        seen = run("ingest", "-c", "own.yaml", "--dry-run", "--json", "executor.type=in_process").succeeds()
        assert seen.json["first"][0]["documents"]
        ran = run("run", "-c", "own.yaml", "--json", "executor.type=in_process")
        assert ran.code == 0, (kept, text, ran.err)
        manifest = Path(yaml.safe_load(text)["mix"]["output"]["path"]) / ".toolkit" / "manifest.json"
        totals = json.loads(manifest.read_bytes())["totals"]
        kept.append((totals["rows"], totals["kept"]))
    assert kept == [(3, 1), (4, 2), (4, 1), (3, 2), (2, 1), (2, 2), (5, 2)]


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    run_here = [block for block in blocks(PAGE) if block.language == "sh" and not block.unrun]
    typed = [shown.command for block in run_here for shown in commands(block)]
    assert len(typed) == 6
    for command in typed:
        carried_out(command, tmp_path, run)


def test_there_are_six_and_one_with_types() -> None:
    assert len(EXAMPLES) == 7


# The configuration of the page about documents in place runs as it stands; the others there are read.

README_OF_HUB = "---\nconfigs:\n- config_name: sample\n  data_files: sample/*.parquet\n---\n"


def make_hub(folder: Path) -> None:
    """Write the files in place that the first example names."""
    (folder / "hub/fineweb/sample").mkdir(parents=True)
    (folder / "hub/fineweb/README.md").write_text(README_OF_HUB)
    rows = [{"text": ENGLISH, "id": "1", "language": "en"}, {"text": ENGLISH, "id": "2", "language": "de"}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "hub/fineweb/sample/000.parquet")


def test_the_first_example_runs_and_the_others_fail_at_their_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    first, *others = (block.text for block in blocks("docs/in-place.md") if block.language == "yaml")
    monkeypatch.chdir(tmp_path)
    make_hub(tmp_path)
    (tmp_path / "web.yaml").write_text(first)
    ran = run("run", "-c", "web.yaml", "executor.type=in_process").succeeds().shows("2 documents, 1 kept")
    assert (tmp_path / "data/web/attributes/lines-0/sample/000.parquet.jsonl.gz").exists()
    for text in others:
        config = yaml.safe_load(text) | {"tag": {"length-0": "length"}}
        config["documents"] |= {"path": f"{tmp_path}/nowhere/*"}  # no bucket, no web
        config["documents"].pop("include", None)
        (tmp_path / "other.yaml").write_text(yaml.safe_dump(config))
        ran = run("tag", "-c", "other.yaml")
        assert (ran.code, "expected at least one file, got no match" in ran.err) == (2, True), ran.err
