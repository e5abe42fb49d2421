"""`toolkit init --from`: a configuration that fits what is at a path, and runs as it is written."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run
from tests.files_in_place import parquet, wet
from tests.marks import slow
from tests.storage.web_server import Behaviour, web
from tests.test_own_data_page import ENGLISH, make

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(run: Run, path: str) -> dict[str, Any]:
    """Write a configuration, run it, and return what it says."""
    ran = run("init", "--from", path, "-o", "made.yaml", "--json").succeeds()
    assert ran.json == {"config": "made.yaml"}
    text = Path("made.yaml").read_text()
    assert "# Made by `toolkit init --from" in text
    run("run", "-c", "made.yaml", "executor.type=in_process", "--quiet").succeeds()
    found: dict[str, Any] = yaml.safe_load(text)
    return found


SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "hub/fineweb": ("parquet", {"config": "sample", "metadata": "rest"}),
    "hub/fineweb/sample/000.parquet": ("parquet", {"metadata": "rest"}),
    "saved/reviews": ("arrow", {"fields": {"text": "review"}, "metadata": "rest"}),
    "news.csv": ("csv", {"fields": {"text": "body"}, "metadata": "rest", "typed": {"year": "int"}}),
    "books": ("text", {"documents": "file"}),
    "pajama/*.jsonl.gz": ("jsonl", {"fields": {"text": "raw_content", "id": "doc_id", "metadata": "meta"}}),
    "forum": ("jsonl", {"metadata": "rest"}),
}


@pytest.mark.parametrize("path", SOURCES)
def test_each_source_of_the_page_needs_no_edit(path: str, tmp_path: Path, run: Run) -> None:
    """Format, columns and types are those that there are; the rule that is proposed can be used."""
    make(tmp_path)
    found = made(run, path)
    (entry,) = found["ingest"]
    format_, options = SOURCES[path]
    assert entry.pop("format") == format_
    assert (entry.pop("from"), entry.pop("source")) == (path, found["dataset"].removeprefix("data/"))
    assert entry == options
    text = Path("made.yaml").read_text()
    if "# - keep:" in text:
        Path("made.yaml").write_text(text.replace("# - keep:", "- keep:"))
        assert run("run", "-c", "made.yaml", "executor.type=in_process", "--quiet").code == 0


@pytest.mark.parametrize("path", ["hub/fineweb", "forum"])
def test_the_way_without_a_copy_is_another_line(path: str, tmp_path: Path, run: Run) -> None:
    make(tmp_path)
    found = made(run, path)
    line = next(each for each in Path("made.yaml").read_text().splitlines() if each.startswith("#   documents: "))
    del found["ingest"]
    found |= yaml.safe_load(line[1:]) | {"dataset": "data/there"}
    Path("there.yaml").write_text(json.dumps(found))
    run("run", "-c", "there.yaml", "executor.type=in_process", "--quiet", "mix.output.path=data/other").succeeds()


def _web(folder: Path) -> str:
    (folder / "crawl").mkdir()
    (folder / "crawl/a.warc.wet.gz").write_bytes(wet([{"key": "1", "body": ENGLISH}]))
    (folder / "crawl/labels.tsv").write_text("a\tb\nc\td\ne\tf\n")
    return "crawl"


def _oscar(folder: Path) -> str:
    english = {"label": "en", "prob": 1.0}
    metadata = {"identification": english, "annotation": None, "sentence_identifications": [english]}
    row = {"content": f"{ENGLISH} " * 1000, "warc_headers": {"warc-record-id": "<urn:1>"}, "metadata": metadata}
    (folder / "en.jsonl").write_text(json.dumps(row) + "\n")
    return "en.jsonl"


def _semicolons(folder: Path) -> str:
    lines = ["Titel;Text;Zahl", f"Ä;{ENGLISH};1,5", f"Ö;{ENGLISH};2", f"Ü;{ENGLISH};3"]
    (folder / "a.csv").write_bytes("\r\n".join(lines).encode("windows-1252"))
    return "a.csv"


def _without_names(folder: Path) -> str:
    rows = [f"https://a.org/{i}\t{i}\t{ENGLISH} {i}" for i in range(9)]
    (folder / "a.tsv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    return "a.tsv.gz"


def _bars(folder: Path) -> str:
    rows = ['"id"|"text"|n|"of"', *(f'{i}|"{ENGLISH} \\"{i}\\" | it"|{i}|""' for i in range(9))]
    (folder / "bars.csv").write_text("\n".join(rows))
    return "bars.csv"


def _not_finite(folder: Path) -> str:
    rows = [{"text": f"{ENGLISH} {i}", "n": float("nan") if i == 3 else i / 7, "in": {"x": 1e400}} for i in range(9)]
    (folder / "a.parquet").write_bytes(parquet(rows))
    return "a.parquet"


def _odd(folder: Path) -> str:
    rows = [{"id": 1.5, "source": {"a": i}, "created": i, "article_text": f"{ENGLISH} {i}"} for i in range(9)]
    rows.append({"id": 1.5, "source": None, "created": 1, "article_text": None})
    (folder / "my data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "my data.jsonl"


def _splits(folder: Path) -> str:
    for split in ("train", "test"):
        path = folder / f"saved/{split}"
        path.mkdir(parents=True)
        table = pa.table({"text": [ENGLISH]})
        with pa.OSFile(str(path / "data.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
        (path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    (folder / "saved/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    return "saved"


def _in_the_way(folder: Path) -> str:
    """Files where the dataset of that name would be."""
    (folder / "data/posts").mkdir(parents=True)
    (folder / "data/posts/a.parquet").write_bytes(parquet([{"text": ENGLISH, "n": 1}]))
    return "data/posts"


def _dataset(folder: Path) -> str:
    (folder / "mine/documents").mkdir(parents=True)
    (folder / "mine/documents/a.jsonl").write_text(json.dumps({"id": "1", "text": ENGLISH, "source": "s"}) + "\n")
    return "mine"


def _no_dataset(folder: Path) -> str:
    """A folder that is called as one of a dataset, with files of another form, as RedPajama has it."""
    (folder / "red/documents").mkdir(parents=True)
    (folder / "red/documents/a.json.gz").write_bytes(gzip.compress(json.dumps({"raw_content": ENGLISH}).encode()))
    return "red"


OTHERS: dict[Callable[[Path], str], dict[str, Any]] = {
    _web: {"format": "wet", "from": "crawl", "source": "crawl"},
    _oscar: {"format": "oscar", "from": "en.jsonl", "source": "en"},
    _semicolons: {"delimiter": ";", "encoding": "windows-1252", "fields": {"text": "Text"}},
    _without_names: {"format": "tsv", "header": ["column_1", "column_2", "column_3"], "fields": {"text": "column_3"}},
    _bars: {"format": "csv", "delimiter": "|", "escape": "\\", "typed": {"n": "int"}},
    _not_finite: {"format": "parquet", "typed": {"n": "float", "in.x": "float"}},
    _odd: {
        "from": "my data.jsonl",
        "source": "my-data",
        "fields": {"text": "article_text", "id": [], "source": [], "created": []},
        "null_text": "skip",
    },
    _splits: {"format": "arrow", "split": "train"},
    _in_the_way: {"format": "parquet", "from": "data/posts"},
    _dataset: {},
    _no_dataset: {"format": "jsonl", "from": "red", "fields": {"text": "raw_content"}},
}


@pytest.mark.parametrize("make", OTHERS, ids=lambda make: make.__name__.strip("_"))
def test_files_of_other_forms(make: Callable[[Path], str], tmp_path: Path, run: Run) -> None:
    """Also what is called in another way, or is not of the type that a document's field has."""
    found = made(run, make(tmp_path))
    (entry,) = found.get("ingest") or [{}]
    assert entry == entry | OTHERS[make]
    if make is _in_the_way:
        assert found["dataset"] == "data/posts-corpus"


OUTPUTS: dict[Callable[[Path], str], str] = {
    _web: "oscar",
    _semicolons: "parquet",
    _splits: "parquet",
    _not_finite: "parquet",
    _odd: "dolma",
    _dataset: "dolma",
}


@pytest.mark.parametrize(
    "make", [_web, _odd, *slow(_semicolons, _splits, _not_finite, _dataset)], ids=lambda make: make.__name__.strip("_")
)
def test_the_output_loses_no_field(make: Callable[[Path], str], tmp_path: Path, run: Run) -> None:
    found = made(run, make(tmp_path))
    assert found["mix"]["output"]["format"] == OUTPUTS[make]
    lost = run("run", "-c", "made.yaml", "--json").json["mix"]["not_carried"]
    assert lost.keys() <= {"source"}
    assert not lost or OUTPUTS[make] == "oscar"


def test_a_table_comes_out_whole(tmp_path: Path, run: Run) -> None:
    """And as OSCAR with what stands for the headers, where somebody takes the comment in place of the output."""
    rows = [
        {"text": f"{ENGLISH} {i}", "url": f"http://a.org/{i}", "score": i / 7, "date": "2020-01-01"} for i in range(9)
    ]
    table = pa.Table.from_pylist(rows).append_column("f", pa.array([i / 7 for i in range(9)], pa.float32()))
    pq.write_table(table, tmp_path / "pages.parquet")
    made(run, "pages.parquet")
    assert run("run", "-c", "made.yaml", "--json").json["mix"]["not_carried"] == {}
    (path,) = Path("data/pages-parquet").glob("*.parquet")
    metadata = pq.read_table(path)["metadata"].combine_chunks()
    for name in table.column_names[1:]:
        assert metadata.field(name).equals(table[name].combine_chunks()), name
    page = Path("made.yaml").read_text()
    lines = page.splitlines()
    (oscar,) = (line.replace("# output", "output") for line in lines if line.startswith("  # output"))
    changed = [oscar if line.startswith("  output:") else line for line in lines]
    Path("made.yaml").write_text("\n".join(changed))
    found = run("run", "-c", "made.yaml", "--json").json["mix"]
    assert found["not_carried"] == {"metadata.f": 9, "metadata.score": 9, "source": 9}
    line = json.loads(gzip.decompress(Path("data/pages-oscar/en/en.jsonl.gz").read_bytes()).splitlines()[0])
    assert line["warc_headers"] == {
        "warc-record-id": "pages.parquet:1",
        "warc-target-uri": "http://a.org/0",
        "warc-date": "2020-01-01",
    }


def test_one_file_on_the_web(tmp_path: Path, run: Run) -> None:
    make(tmp_path)
    with web(tmp_path / "pajama", Behaviour()) as url:
        found = made(run, f"{url}0.jsonl.gz")
    assert found["ingest"][0]["fields"] == {"text": "raw_content", "id": "doc_id", "metadata": "meta"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere"], "nowhere: expected a file, got nothing there"),
        (["empty"], "empty: expected files, got none"),
        (["page.html"], "page.html: expected a file that an input format reads, got an HTML or XML page"),
        (["list.json"], "got a JSON array; make it a line for each element"),
        (["*.*"], "expected files of one kind"),
        (["page.html", "c4"], "expected a path after `--from`, or a recipe, got both: page.html and c4"),
        (["page.html", "-o", "list.json"], "list.json: expected a file that is not there yet"),
    ],
)
def test_what_cannot_be_read_is_told_and_nothing_written(given: list[str], said: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "page.html").write_text("<!DOCTYPE html><p>x</p>\n")
    (tmp_path / "list.json").write_text('[{"text": "a"}]\n')
    ran = run("init", "--from", *given)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "list.json", "page.html"]


def test_the_name_is_that_of_the_data(run: Run) -> None:
    Path("news.csv").write_text("text,n\na text,1\nanother,2\n")
    assert run("init", "--from", "news.csv").code == 0
    assert Path("news.yaml").is_file()
