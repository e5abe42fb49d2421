"""A document can be followed from the item of its input to the output, also one that ingest has left out."""

import json
from typing import Any

import pytest

from tests.pipeline.conftest import Project, read_bytes, tree
from tests.pipeline.test_warc import HTML, http, page, record, write_warc


def url(number: int) -> str:
    return f"https://a.example/{number}?page=1&key=abcdefgh"  # has a query, which messages hide


def begin(project: Project, **options: Any) -> None:
    """Two JSON Lines files: of `a`, three items are too short, one is no JSON, one has no text."""
    folder = project.root / "in"
    folder.mkdir()
    for name, count in (("a", 40), ("b", 6)):
        lines = []
        for i in range(1, count + 1):
            text = "no" if name == "a" and i in (3, 4, 17) else f"The text of document {i}."
            row: dict[str, Any] = {"id": f"{name}{i}", "text": text, "metadata": {"url": url(i)}}
            if name == "a" and i == 9:
                del row["text"]
            lines.append("{broken" if name == "a" and i == 8 else json.dumps(row))
        (folder / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines))
    entry = {"format": "jsonl", "from": [f"{folder}/*"], "source": "s", "trim": {"min_chars": 5}, "on_error": "skip"}
    project.config["ingest"] = [entry | {"max_rejected": 1.0} | options]
    project.config["tag"] = {"length-0": "length"}
    project.mixes(
        {"drop": 'document.id == "a12"', "name": "twelve"},
        {"annotate": "long", "when": "length.chars > 22"},
        attributes=["length-0"],
    )


WAYS: list[dict[str, Any]] = [{"pack": "1 B"}, {"pack": "1 MB"}, {"pack": "1 B", "shard_size": 600}]


@pytest.mark.parametrize("options", WAYS, ids=["alone", "pack", "cut"])
def test_a_document_is_followed_from_its_item_to_the_output(options: dict[str, Any], project: Project) -> None:
    begin(project, **options)
    project.ok("run")
    for id, item in [("a1", 1), ("a5", 5), ("a7", 7), ("a10", 10), ("a18", 18), ("a40", 40), ("b1", 1), ("b6", 6)]:
        (found,) = project.ok("head", "--id", id, "--json").json["documents"]
        assert (found["input"], found["item"]) == (f"{project.root}/in/{id[0]}.jsonl", item)
        (place,) = found["output"]
        path, _, line = place.rpartition(":")
        assert json.loads(read_bytes(type(project.root)(path)).split(b"\n")[int(line) - 1])["id"] == id
        (explained,) = project.ok("mix", "--explain", id, "--json").json["documents"]
        assert {key: explained[key] for key in ("input", "item", "output")} == {
            key: found[key] for key in ("input", "item", "output")
        }
        assert explained["attributes"]["length"]["chars"] == explained["chars"]
    (dropped,) = project.ok("mix", "--explain", "a12", "--json").json["documents"]
    assert (dropped["dropped"], dropped["item"]) == ("twelve", 12)
    assert "output" not in dropped
    by_url = project.ok("mix", "--explain", url(6), "--json").json["documents"]
    assert sorted(each["id"] for each in by_url) == ["a6", "b6"]
    assert "from " + str(project.root / "in" / "a.jsonl") + ", item 6\n" in project.ok("head", "--id", "a6").out
    (of_output,) = project.run("head", project.out, "--id", url(7), "--json").json["documents"]
    assert of_output["id"] == "a7"


@pytest.mark.parametrize("options", WAYS, ids=["alone", "pack", "cut"])
@pytest.mark.parametrize("command", ["head --id", "mix --explain"])
@pytest.mark.parametrize(
    ("item", "reason"), [(3, "trim"), (17, "trim"), (9, "rejected.missing field"), (8, "rejected.not json")]
)
def test_what_ingest_has_left_out_is_found_with_its_reason(
    item: int, reason: str, command: str, options: dict[str, Any], project: Project
) -> None:
    begin(project, **options)
    project.ok("ingest")
    project.ok("tag")
    name, option = command.split()
    if item == 8:  # nobody knows what it was
        project(name, option, "a8").fails(
            2,
            "expected a document with the id or URL 'a8', got none in ",
            ", and none among those that `ingest` left out",
        )
        return
    for wanted in (f"a{item}", url(item)):
        (found,) = project.ok(name, option, wanted, "--json").json["left_out"]
        path = f"{project.root}/in/a.jsonl"
        assert found == {
            "input": path, "number": item, "reason": reason, "id": f"a{item}", "url": url(item), "source": None
        }  # fmt: skip
        assert f"{path}, item {item}\n  left out by `ingest`: {reason}\n" in project.ok(name, option, wanted).out


def test_pages_of_a_crawl_that_are_no_documents_are_found(project: Project) -> None:
    write_warc(
        project.root,
        record(1, http(page("A page with text."), HTML)),
        record(2, http(page("Nothing here."), HTML, status="404 Not Found")),
        record(3, http(b"PNG", "Content-Type: image/png")),
        record(4, http(page(""), HTML)),
    )
    assert project.ingest({"format": "warc", "from": [f"{project.root}/in/*"], "source": "cc"}).code == 0
    found = [project.ok("head", "--id", f"http://host/{n}", "--json").json for n in (1, 2, 3, 4)]
    assert found[0]["documents"][0]["item"] == 1
    assert [each["left_out"][0]["reason"] for each in found[1:]] == ["status.404", "content_type.image/png", "no_text"]
    assert [each["left_out"][0]["id"] for each in found[1:]] == [f"<urn:uuid:{n}>" for n in (2, 3, 4)]


def test_the_notes_are_the_same_for_any_number_of_processes_and_go_with_their_input(project: Project) -> None:
    begin(project, pack="1 B")
    notes = project.data / ".toolkit" / "left-out"
    found = []
    for processes in (1, 2):
        project.config |= {"processes": processes, "executor": {"type": "local"}}
        project.ok("ingest", "--overwrite")
        found.append(tree(notes))
    assert found[0] == found[1]
    assert list(found[0]) == ["s/a.jsonl.gz"], "each item of the other input is a document"
    before = found[0]
    project.ok("ingest")
    assert tree(notes) == before
    project.ok("clean", "--forget", "s/a.jsonl")
    assert not tree(notes)
