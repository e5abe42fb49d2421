"""Values of others by id in a bucket: documents, values and set there are those of a disk."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import recipes
from tests.conftest import ROOT, Run
from tests.files_in_place import NAMES, attributes, config, lay_out, output
from tests.learn.annotate.conftest import PROMPT
from tests.learn.annotate.server import serving
from tests.pipeline.conftest import document
from tests.recipes import tree
from tests.storage.web_server import Behaviour, web
from toolkit.storage import store_of
from toolkit.storage.compression import compress_small, compress_zstd
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import glob_folders, join, list_files

pytestmark = [pytest.mark.s3, pytest.mark.slow]


# Answers of a language model for documents in a bucket: the ledger lies with the answers, on a disk.


def test_the_cost_limit_of_a_set_in_a_bucket_holds_over_all_runs(bucket: str, run: Run, tmp_path: Path) -> None:
    for shard in "ab":
        rows = [json.dumps({"id": f"{shard}{i}", "text": f"text {shard} {i}", "source": "s"}) for i in range(20)]
        write_file(f"{bucket}/data/documents/{shard}.jsonl", "\n".join([*rows, ""]).encode())
    with serving() as server:
        entry = {
            "endpoint": server.url,
            "model": "m",
            "prompt": PROMPT,
            "concurrency": 4,
            "answers": f"{tmp_path}/kept",
        }
        entry |= {"sampling": {"max_tokens": 10}, "prices": {"input": 1e6, "output": 1e6}}
        for most in (5, 12, 60):
            config = {"dataset": f"{bucket}/data", "annotate": {"edu-0": {**entry, "max_cost": most * 110}}}
            (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
            ran = run("annotate", "-c", tmp_path / "c.yaml", "--json")
            assert (ran.code, "leaves" in ran.err) == (0 if most == 60 else 1, most < 60), ran.err
            assert len(server.bodies) <= most
            (stage,) = run("status", "-c", tmp_path / "c.yaml", "--json").json["stages"]
            assert stage["spent"]["cost"] == 110 * len(server.bodies)
        assert {*server.answered.values()} == {1}
    assert len(server.bodies) == 40


# Annotation files in a bucket: what is joined there, and what is written there, are what a disk has.


# Configurations of Dolma's over buckets: the tagger, beside the documents and elsewhere, then the mixer.


def put(root: str) -> None:
    for name, compress in (
        ("en/a.jsonl.gz", compress_small),
        ("en/b.jsonl.zstd", compress_zstd),
        ("de/c.gz", compress_small),
    ):
        rows = [{"id": f"{name}:{i}", "text": "x" * (10 * i), "source": "s"} for i in range(3)]
        write_file(join(root, "documents", name), compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


def run_config(run: Run, folder: Path, command: str, config: dict[str, Any]) -> None:
    path = folder / f"{command}.json"
    path.write_text(json.dumps(config))
    run("-c", path, command).succeeds()


@pytest.mark.parametrize("destination", [False, True], ids=["beside", "destination"])
def test_a_bucket_is_tagged_and_mixed_as_a_folder_is(bucket: str, tmp_path: Path, run: Run, destination: bool) -> None:
    found = []
    for root in (join(bucket, "corpus"), str(tmp_path / "corpus")):
        put(root)
        assert glob_folders(f"{root}/*/[de]?") == [f"{root}/documents/de", f"{root}/documents/en"]
        globs = [join(root, "documents/en/*"), join(root, "documents/d?/*.gz")][: None if not destination else 1]
        globs += [join(root, "documents/de/c.gz")] if destination else []
        tag = {"documents": globs, "taggers": ["char_length_v1"], "experiment": "e"}
        if destination:
            tag["destination"] = [join(root, "attributes/e/en"), join(root, "attributes/e/de")]
        run_config(run, tmp_path, "tag", tag)
        output = {"path": join(root, "mixed")}
        rule = {"exclude": ["$.attributes[?(@.e__char_length_v1__length && @.e__char_length_v1__length[0][2] < 5)]"]}
        stream = {"name": "s", "documents": globs, "attributes": ["e"], "filter": rule, "output": output}
        run_config(run, tmp_path, "mix", {"streams": [stream], "compat": "strict"})
        names = [name for name in list_files(root) if not name.startswith(("documents/", "mixed/s_sha256"))]
        assert names == [
            *(f"attributes/e/{name}" for name in ("de/c.gz", "en/a.jsonl.gz", "en/b.jsonl.zstd")),
            "mixed/s-0000.json.gz",
        ]
        found.append(gzip.decompress(store_of(root).read(join(root, "mixed/s-0000.json.gz"))))
    assert found[0] == found[1]
    ids = [json.loads(line)["id"] for line in found[0].splitlines()]
    assert ids == [f"{name}:{i}" for name in ("en/a.jsonl.gz", "en/b.jsonl.zstd", "de/c.gz") for i in (1, 2)]
    assert not Path("s3:").exists()


# Documents in place in a bucket and on the web: what is made of them is what is made of files on disk.

pytest.importorskip("pyarrow", exc_type=ImportError)


def shown(run: Run, path: str, *more: str) -> list[str]:
    """Return the place of a document behind the first row group, which `head` looks up in the row index."""
    first = run("head", "-c", path, "-n", "100000", "--json", *more).json["documents"]
    wanted = next(each for each in first if each["place"].endswith(f"more/c.{_format_of(each)}:31"))
    return [each["place"] for each in run("head", "-c", path, "--id", wanted["id"], "--json", *more).json["documents"]]


def _format_of(document: dict[str, Any]) -> str:
    return str(document["place"].rpartition("/c.")[2].rpartition(":")[0])


@pytest.mark.parametrize("format_", ["wet", "jsonl", "parquet"])
def test_in_a_bucket(format_: str, bucket: str, tmp_path: Path, run: Run) -> None:
    roots = str(tmp_path), join(bucket, format_)
    for root in roots:
        lay_out(root, format_)
        path = config(root, format_, in_place=True)
        for command in ("run", "validate"):
            run(command, "-c", path).succeeds()
        assert shown(run, path) == [join(root, f"theirs/more/c.{NAMES[format_]}:31")]
    local, remote = (output(root, "in-place") | attributes(root, "in-place", format_) for root in roots)
    assert remote == local


@pytest.mark.parametrize("format_", ["wet", "jsonl", "parquet"])
def test_on_the_web(format_: str, tmp_path: Path, run: Run) -> None:
    root = str(tmp_path)
    lay_out(root, format_)
    assert run("run", "-c", config(root, format_, in_place=True)).code == 0
    local = output(root, "in-place") | attributes(root, "in-place", format_)
    with web(tmp_path / "theirs", Behaviour()) as url:
        documents = {
            "documents.path": url,
            "documents.include": f"[{', '.join(f'{name}.{NAMES[format_]}' for name in ('a', 'b', 'more/c'))}]",
            "dataset": join(root, "far"),
            "mix.output.path": join(root, "out-far"),
        }
        given = [f"{name}={value}" for name, value in documents.items()]
        for command in ("run", "run", "validate"):
            run(command, "-c", join(root, "in-place.yaml"), *given).succeeds()
        places = shown(run, join(root, "in-place.yaml"), *given)
        assert places == [f"{url}more/c.{NAMES[format_]}:31"]
    assert output(root, "far") | attributes(root, "far", format_) == local


# Packs of small objects: read some at a time, in their order, into the bytes that files on disk become.


def made(root: str) -> dict[str, str]:
    return {name: digest for name, digest in tree(root).items() if name.startswith(("data/", "out/"))}


# Queries and exports in a bucket: the rows and the files are those of a disk.

pytest.importorskip("duckdb", reason="SQL needs DuckDB (extra sql)")


def test_the_rows_of_a_query_are_written_to_a_bucket_as_to_a_disk(tmp_path: Path, bucket: str, run: Run) -> None:
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        rows = "".join(json.dumps(document(f"a{i}", "x" * i)) + "\n" for i in range(20))
        write_file(join(root, "data/documents/a.jsonl"), rows.encode())
        query = "SELECT id, length(text) AS chars FROM documents ORDER BY id"
        run("sql", query, join(root, "data"), "--output", join(root, "exp/found.parquet")).succeeds()
        found.append(tree(join(root, "exp")))
    assert found[0] == found[1]
    assert len(found[0]) == 1


@pytest.mark.parametrize("recipe", recipes.EVERYWHERE)
def test_a_recipe_gives_the_same_bytes_in_one_pass_wherever_it_is(
    recipe: str, bucket: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    expected = recipes.made(run, recipe, str(tmp_path / "singly"), *recipes.commands(recipe))
    assert any(name.startswith("out/") for name in expected)
    for processes in (1, 2):
        assert recipes.made(run, recipe, str(tmp_path / f"run-{processes}"), "run", processes=processes) == expected
    assert recipes.made(run, recipe, join(bucket, recipe), "run") == expected
