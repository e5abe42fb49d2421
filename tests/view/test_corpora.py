"""What is browsed beside datasets of ours: files in place, outputs, documents that nobody has indexed, damage."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import toolkit
from tests.conftest import Run
from tests.files_in_place import config, lay_out
from tests.pipeline.conftest import TEXTS as SMALL, Project, document, id_of, read_rows, write_rows
from tests.view.sites import Site, serving
from toolkit.commands import view
from toolkit.commands.view import Options
from toolkit.stages.dispatch import open_context
from toolkit.view.answers import CorpusAnswers
from toolkit.view.labels import LabelFile, LabelQuestion
from toolkit.view.server import ViewServer

IDS = [id_of(shard, i) for shard, texts in SMALL.items() for i in range(1, len(texts) + 1)]


@contextmanager
def _at_path(path: Path) -> Iterator[Site]:
    """Serve what lies at a path."""
    with open_context(Options(targets=(str(path),), quiet=True)) as context:
        corpus = view.of_path(context, str(path))
        with LabelFile(str(path.parent / "l.jsonl"), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
            server = ViewServer(
                CorpusAnswers(corpus, labels, None, [], [each.name for each in corpus.sets]), debug=True
            )
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
            try:
                yield Site(server, labels)
            finally:
                server.end()


@pytest.mark.parametrize("format_", ["parquet", "wet", "jsonl"])
def test_files_in_place(format_: str, tmp_path: Path, run: Run) -> None:
    pytest.importorskip("pyarrow")
    lay_out(str(tmp_path), format_)
    path = config(str(tmp_path), format_, in_place=True)
    assert run("tag", "-c", path).code == 0
    given = json.loads(Path(path).read_text())
    joined = [(row.document.id, row.document.text) for row in toolkit.Dataset(given).joined("length-0")]
    with serving({**given, "mix": {}}, tmp_path / "l.jsonl") as site:
        assert [*site.ids(count=100), *site.ids(first=100, count=100)] == [id for id, _ in joined]
        assert site.ids(first=len(joined) - 3, count=2) == [id for id, _ in joined[-3:-1]]
        shown = site.ok("rows", first=1, count=1)["rows"][0]
        found = site.ok("document", shard=shown["at"][0], row=shown["at"][1])
        assert (found["id"], found["text"]) == joined[1]
        assert found["values"][0]["set"] == "length-0"
        assert site.ok("find", id=joined[2][0])["places"]
        assert site.ok("rows", where="document.chars >= 0")["total"] == len(joined)


@pytest.mark.parametrize("format_", ["dolma", "parquet"])
def test_outputs(format_: str, small: Project) -> None:
    if format_ == "parquet":
        pytest.importorskip("pyarrow")
    small.config["mix"]["output"] |= {"format": format_} | ({"attributes": True} if format_ == "dolma" else {})
    small.ok("mix")
    with _at_path(small.out) as site:
        total = site.ok("rows")["total"]
        found = site.ok("rows", count=100)["rows"]
        assert total == len(found) > 5
        texts = [site.ok("document", shard=row["at"][0], row=row["at"][1])["text"] for row in reversed(found)]
        assert {text.strip() for text in texts} <= {text.strip() for shard in SMALL.values() for text in shard}
        if format_ == "dolma":
            values = site.ok("document", shard=0, row=0)["values"][0]["rows"]
            assert "line_shape.lines" in [path for path, *_ in values]
            assert site.ids(where="line_shape.lines == 2 and noise.chars > 0", count=1) != []
        if found[0]["id"]:
            assert site.ids(where=f"document.id == {found[-1]['id']!r}") == [found[-1]["id"]]
        assert site.ask("rows", where="document.nothing.at.all ==").status == 400


def test_a_release_of_oscar(tmp_path: Path) -> None:
    rows = [
        {
            "content": f"line {i}\nother",
            "warc_headers": {"warc-record-id": f"<urn:uuid:{i}>"},
            "metadata": {
                "identification": {"label": "fi" if i % 2 else "en", "prob": 0.5 + i / 100},
                "annotation": None,
                "sentence_identifications": [{"label": "fi", "prob": 0.9}, None],
            },
        }
        for i in range(40)
    ]
    write_rows(tmp_path / "oscar" / "fi_part_1.jsonl.gz", rows)
    with _at_path(tmp_path / "oscar") as site:
        assert site.ids(first=30, count=20) == [f"<urn:uuid:{i}>" for i in range(30, 40)]
        assert site.ids(first=3, count=2) == ["<urn:uuid:3>", "<urn:uuid:4>"]
        assert site.ok("rows")["total"] in (None, 40)
        assert site.ids(where="identification.label == 'fi'", count=3) == [f"<urn:uuid:{i}>" for i in (1, 3, 5)]
        assert site.ids(sort="identification.prob", order="descending", count=2) == ["<urn:uuid:39>", "<urn:uuid:38>"]
        marks = site.ok("document", shard=0, row=1)["marks"]
        assert (marks["label"], marks["lines"]) == ("fi", [["fi", 0.9], [None, None]])
        assert site.label(at=[0, 1], id="<urn:uuid:1>", question="q", label="a").status == 200


def test_documents_that_nobody_has_indexed(project: Project) -> None:
    for shard, texts in SMALL.items():
        write_rows(project.documents / shard, [document(id_of(shard, i), text) for i, text in enumerate(texts, 1)])
    with serving(project.config, project.root / "l.jsonl") as site:
        assert site.ok("view")["documents"] is None
        assert [id for first in range(0, 20, 3) for id in site.ids(first=first, count=3)] == IDS
        assert site.ok("view")["documents"] is None  # nothing was written, and what was learned may have changed
        assert site.ids(first=7, count=100) == IDS[7:]
        assert site.ids(first=500) == []
        assert site.ok("rows")["total"] == len(IDS)
        assert not (project.data / ".toolkit").exists()
        assert site.ok("find", id=IDS[4])["places"] is None
        assert site.ids(where=f"document.id == '{IDS[4]}'") == [IDS[4]]  # which indexes
        assert site.ok("view")["documents"] == len(IDS)


def test_damage_is_told_where_it_is_and_hides_nothing_else(small: Project) -> None:
    (small.attributes / "shape-0" / "b.jsonl.gz").unlink()
    whole = small.attributes / "shape-0" / "a.jsonl.gz"
    rows = read_rows(whole)
    write_rows(whole, [rows[1], rows[0], *rows[2:]])
    with serving(small.config, small.root / "l.jsonl") as site:
        assert site.ids(count=100) == IDS
        [fault] = site.ok("document", shard=0, row=0)["faults"]
        assert "expected the attributes of" in fault
        assert site.ok("document", shard=0, row=0)["text"] == SMALL["a.jsonl.gz"][0]
        [fault] = site.ok("document", shard=1, row=0)["faults"]
        assert "expected the attributes of" in fault
        assert site.ok("document", shard=2, row=0)["faults"] == []
        found = site.ok("rows", where="line_shape.lines > 0", count=100)
        assert {row["shard"] for row in found["rows"]} == {"deep/er/c.jsonl.gz"}
        assert len(found["faults"]) == 2
        answer = site.ask("explain", shard=0, row=0)
        assert answer.status == 400
        assert "expected the attributes of" in answer.json["error"]


def test_a_set_that_was_made_anew_is_read_anew_when_the_page_is_loaded(small: Project) -> None:
    with serving(small.config, small.root / "l.jsonl") as site:
        before = site.ok("document", shard=0, row=0)["values"]
        rows = read_rows(small.documents / "a.jsonl.gz")
        rows[0]["text"] = "one\ntwo\nthree\nfour"
        write_rows(small.documents / "a.jsonl.gz", rows)
        small.ok("tag")
        site.ok("view")
        after = site.ok("document", shard=0, row=0)
        assert after["text"] == "one\ntwo\nthree\nfour"
        assert after["values"] != before
        assert after["faults"] == []
        assert site.ids(where="line_shape.lines == 4") == ["a-1"]
