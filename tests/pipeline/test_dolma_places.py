"""Where Dolma has documents: the order of its globs, every suffix of a shard, other places for attributes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from tests.pipeline.dolma import Dolma, filtered, outputs
from tests.recipes import mix_of
from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.storage.compression import compressor_for
from toolkit.storage.outputs import write_file
from toolkit.storage.reading import Lines

SHARDS = ["a/x", "a-b/x", "b/y", "b/a", "B/z", "a/sub/q", "z", "a0/x", "é/x", "10/x", "9/x"]


def write(path: Path, rows: list[Any]) -> None:
    write_file(str(path), compressor_for(str(path))(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


@pytest.mark.parametrize(
    ("globs", "order"),  # as Dolma 1.2.1 wrote them; what two globs match comes twice there
    [
        (["*/*.gz"], "10/x 9/x B/z a/x a-b/x a0/x b/a b/y é/x"),
        (["**/*.gz"], "10/x 9/x B/z a/sub/q a/x a-b/x a0/x b/a b/y z é/x"),
        (["b/*.gz", "a/*.gz", "*/x.gz"], "b/a b/y a/x 10/x 9/x a-b/x a0/x é/x"),
        (["[ba]/*.gz"], "a/x b/a b/y"),
    ],
)
def test_strict_keeps_the_order_of_dolmas_patterns(dolma: Dolma, globs: list[str], order: str) -> None:
    for name in SHARDS:
        dolma.put([document(name, "text")], shard=f"{name}.gz")
    dolma.stream.update({"documents": [f"DATA/documents/{glob}" for glob in globs], "attributes": []})
    filtered(dolma, include=["$.id"])
    dolma.config["compat"] = "strict"
    dolma.ok()
    assert [row["id"] for row in outputs(dolma.out)["s"]] == order.split()
    dolma.stream["output"]["max_size_in_bytes"] = 1
    dolma.ok()
    assert [row["id"] for row in outputs(dolma.out)["s"]] == order.split()  # over all parts
    del dolma.config["compat"]
    dolma.ok()
    assert [row["id"] for row in outputs(dolma.out)["s"]] == sorted(order.split())


def test_strict_keeps_the_order_over_several_folders_and_streams(dolma: Dolma) -> None:
    for root in ("k", "l", "m"):
        for name in ("1", "2"):
            write_rows(dolma.root / root / "documents" / f"{name}.gz", [document(root + name, "text")])
    globs = ["l/documents/2.gz", "*/documents/1.gz", "k/documents/2.gz"]
    filtered(dolma, include=["$.id"])
    dolma.stream.update({"documents": [f"{dolma.root}/{glob}" for glob in globs], "attributes": []})
    dolma.config["streams"].append(
        {**dolma.stream, "name": "t", "documents": list(reversed(dolma.stream["documents"]))}
    )
    dolma.config["compat"] = "strict"
    dolma.ok()
    found = {name: " ".join(row["id"] for row in rows) for name, rows in outputs(dolma.out).items()}
    assert found == {"s": "l2 k1 l1 m1 k2", "t": "k2 k1 l1 m1 l2"}
    dolma.stream["documents"].insert(0, f"{dolma.root}/m/documents/1.gz")
    dolma.ok()
    assert " ".join(row["id"] for row in outputs(dolma.out)["s"]) == "m1 l2 k1 l1 k2"


def test_a_stream_of_our_own_form_takes_an_order(project: Project) -> None:
    for name in ("a", "b"):
        write_rows(project.documents / f"{name}.jsonl.gz", [document(name, "text")])
    mix: dict[str, Any] = {"output": {"format": "dolma", "path": str(project.out)}}
    stream: dict[str, Any] = {"dataset": str(project.data), "order": ["b.*", "*"]}
    project.config = {"mix": mix | {"streams": {"s": stream}}}
    project.ok("mix")
    rows = gzip.decompress((project.out / "documents" / "documents.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(row)["id"] for row in rows] == ["b", "a"]
    stream["order"] = "b"
    project("mix").fails(2, "order: expected globs over shards, or {GLOB: NUMBER}, got 'b'")


@pytest.mark.parametrize("suffix", [*SHARD_SUFFIXES[::3], *slow(*SHARD_SUFFIXES[1::3], *SHARD_SUFFIXES[2::3])])
def test_each_suffix_is_a_shard_to_every_command(project: Project, suffix: str) -> None:
    shard = f"cc/x{suffix}"
    write(project.documents / shard, [document("d0", "zero\none"), document("d1", "two")])
    write(project.attributes / "m" / shard, [attributes("d0", {"k": 1}), attributes("d1", {"k": 2})])
    project.config = {
        "dataset": str(project.data),
        "tag": {"length-0": ["length"]},
        "mix": mix_of(project.out, {"drop": "k == 2 or length.lines > 5"}, attributes=["length-0", "m"]),
    }
    project.ok("tag")
    with Lines(str(project.attributes / "length-0" / shard), 1000) as lines:
        assert len(list(lines)) == 2
    project.ok("mix")
    assert [row["id"] for row in read_rows(project.out / "documents" / "documents.jsonl.gz")] == ["d0"]
    project.ok("validate")
    project.ok("stats", "--attribute", "all")
    project.ok("status")
    project.ok("card", "--of", "dataset", "--dry-run", "about.name=x")
    assert project.run("head", project.documents / shard, "-n", "1").code == 0
    assert "lines" in project.run("tag", "--try", project.documents / shard, "length").out
    project.config = {
        "dataset": str(project.root / "other"),
        "ingest": [{"format": "dolma", "from": [str(project.documents / "**")], "source": "s"}],
    }
    project.ok("ingest")
    assert [path.name for path in (project.root / "other" / "documents").rglob("*x*.*")] == ["x.jsonl.gz"]


@pytest.mark.parametrize("suffix", [".jsonl.zstd", ".json.zst", ".gz"])
def test_a_configuration_of_dolmas_over_each_suffix(dolma: Dolma, suffix: str) -> None:
    write(dolma.data / "documents" / f"x{suffix}", [document("d0", "zero"), document("d1", "")])
    tag = {"documents": [f"DATA/documents/*{suffix}"], "taggers": ["char_length_v1"], "experiment": "m"}
    mix, dolma.config = dolma.config, tag
    dolma.ok(command="tag")
    dolma.config = mix
    dolma.stream["documents"] = tag["documents"]
    filtered(dolma, exclude=["$.attributes[?(@.m__char_length_v1__length[0][2] > 0)]"])
    dolma.ok()
    assert dolma.texts() == {"d1": ""}


@pytest.mark.parametrize(
    ("documents", "destination", "file"),
    [
        ("data/documents/*/*.gz", "other/attributes/e", "other/attributes/e/en/x.gz"),
        ("data/documents/en/*.gz", "other/attributes/e/en", "other/attributes/e/en/x.gz"),
        ("data/documents/en/*.gz", "other/attributes/e", "other/attributes/e/x.gz"),
        ("data/documents/en", "other/attributes/e", "other/attributes/e/x.gz"),
        ("data/documents/en/x.gz", "data/attributes/e/en", "data/attributes/e/en/x.gz"),
        ("data/raw/*.gz", "data/tags/e", "data/tags/e/y.gz"),
    ],
)
def test_a_destination_of_the_tagger(dolma: Dolma, documents: str, destination: str, file: str) -> None:
    dolma.put([document("d0", "zero")], shard="en/x.gz")
    write_rows(dolma.data / "raw" / "y.gz", [document("d0", "zero")])
    dolma.config = {
        "documents": [f"{dolma.root}/{documents}"],
        "destination": [f"{dolma.root}/{destination}"],
        "taggers": ["char_length_v1", "doc_count_v1"],
    }
    dolma.ok(command="tag")
    assert read_rows(dolma.root / file)[0]["attributes"] == {
        "char_length_v1__char_length_v1__length": [[0, 4, 4.0]],
        "doc_count_v1__doc_count_v1__docs": [[0, 4, 1.0]],
    }
    assert not (dolma.data / "raw" / ".toolkit").exists()
