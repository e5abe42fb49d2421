"""``toolkit tag --sample``: a throwaway sample, which is looked at and never taken for the sets."""

import json

import numpy as np
import pytest

from tests.pipeline.conftest import Project, document, read_rows, strays, tree, write_rows
from toolkit.data.row_index import row_hash
from toolkit.tag.sample import keys_of

SHARDS = {"a.jsonl.gz": 90, "b.jsonl": 7, "deep/c.jsonl.gz": 203}


@pytest.fixture
def corpus(project: Project) -> Project:
    """Three shards; a set on disk that the section does not make, one that it makes, and one that is to be tried."""
    for shard, count in SHARDS.items():
        rows = [document(f"{shard[0]}{i}", f"text {i}\n" * (i % 9 + 1), metadata={"n": i}) for i in range(count)]
        write_rows(project.documents / shard, rows)
    project.config["tag"] = {"length-0": "length", "shape-0": "line_shape"}
    project.ok("tag")
    project.config["tag"] = {"shape-0": "line_shape", "noise-0": {"tagger": "noise", "when": "length.chars > 20"}}
    project.config["mix"] = {
        "attributes": ["shape-0", "noise-0", "length-0"],
        "rules": [{"drop": "line_shape.lines > 5", "name": "long"}, {"drop": "noise is None", "name": "not asked"}],
        "output": {"format": "dolma", "path": str(project.out)},
    }
    return project


def drawn(project: Project, *more: object) -> list[str]:
    project.ok("tag", "--sample", 50, *more)
    rows = [row for path in sorted((project.data / ".toolkit/samples/documents").iterdir()) for row in read_rows(path)]
    return [row["id"] for row in rows]


def test_it_has_exactly_so_many_documents_by_their_hashes(corpus: Project) -> None:
    """With the least keys of all, in the order of the dataset; whatever the number of processes."""
    before = tree(corpus.attributes)
    found = drawn(corpus)
    ids = [f"{shard[0]}{i}" for shard, count in SHARDS.items() for i in range(count)]
    keys = keys_of(np.array([row_hash("s", id) for id in ids], dtype=np.uint64), 0).tolist()
    least = {ids[i] for i in sorted(range(len(ids)), key=keys.__getitem__)[:50]}
    assert found == [id for id in ids if id in least]
    assert drawn(corpus, "processes=2") == found != drawn(corpus, "--seed", 1)
    assert len(drawn(corpus)) == 50
    assert corpus.ok("tag", "--sample", 10_000, "--json").json["sample"]["documents"] == 300
    assert tree(corpus.attributes) == before
    assert not strays(corpus.root)


def test_keys_of_many_documents_are_spread_evenly() -> None:
    keys = keys_of(np.arange(100_000, dtype=np.uint64), 7)
    counts = np.bincount((keys >> np.uint64(60)).astype(int), minlength=16)
    assert abs(counts - 6250).max() < 400


@pytest.mark.slow
def test_a_dry_run_over_it_says_so_and_a_mix_refuses_it(corpus: Project) -> None:
    assert "expected an attribute set" in corpus("mix", "--dry-run").err
    ids = drawn(corpus)
    for options in (["--dry-run"], ["--dry-run", "--sample"], ["--explain", 1], ["--compare", corpus.yaml]):
        ran = corpus.ok("mix", *options)
        assert ran.out.startswith("on a sample: 50 of 300 documents (seed 0)\n")
        assert json.loads(corpus.ok("mix", *options, "--json").out)["sample"].startswith("on a sample")
    totals = corpus.ok("mix", "--dry-run", "--json").json["totals"]
    assert totals["rows"] == len(ids) == 50
    corpus("mix").fails(2, "expected the set 'noise-0' of all documents, got a sample of it; run `toolkit tag`")
    assert not corpus.out.exists()
    corpus.ok("tag")
    assert "sample" not in corpus.ok("mix", "--dry-run").out
    assert "on a sample" in corpus.ok("mix", "--dry-run", "--sample").out
    assert "expected --sample only with --dry-run" in corpus("mix", "--sample").err
    corpus.ok("mix")


def test_values_of_the_sample_are_those_of_the_sets(corpus: Project) -> None:
    ids = drawn(corpus)
    corpus.ok("tag")
    for name in ("shape-0", "noise-0", "length-0"):
        made = [row for shard in SHARDS for row in read_rows(corpus.attributes / name / shard) if row["id"] in ids]
        folder = corpus.data / ".toolkit/samples/attributes" / name
        assert [row for path in sorted(folder.iterdir()) for row in read_rows(path)] == made


def test_a_sample_of_what_has_changed_is_refused(corpus: Project) -> None:
    ids = drawn(corpus)
    corpus.config["tag"]["noise-0"]["when"] = "length.chars > 30"
    corpus("mix", "--dry-run").fails(2, "on a sample: 50 of 300", "run `toolkit tag --sample 50` again")
    assert drawn(corpus) == ids
    corpus.ok("mix", "--dry-run")
    write_rows(corpus.documents / "b.jsonl", [document("b0", "another")])
    assert "expected a sample of the present documents" in corpus("mix", "--dry-run").err


def test_clean_deletes_it(corpus: Project) -> None:
    drawn(corpus)
    assert corpus.ok("clean", "--dry-run", "--json").json["samples"]
    assert (corpus.data / ".toolkit/samples").exists()
    assert "deleted, and 1 sample" in corpus.ok("clean").out
    assert not (corpus.data / ".toolkit/samples").exists()
    assert "expected a sample" in corpus("mix", "--dry-run", "--sample").err


def test_no_sample_is_left_of_documents_that_cannot_be_read(corpus: Project) -> None:
    drawn(corpus)
    (corpus.documents / "b.jsonl").write_text("[]\n")
    corpus("tag", "--sample", 50).fails(1, "b.jsonl:1: expected")
    assert not (corpus.data / ".toolkit/samples").exists()
    for option in (["--limit", 1], ["--shard", "0/2"], ["--dry-run"]):
        assert "expected --sample without" in corpus("tag", "--sample", 5, *option).err
