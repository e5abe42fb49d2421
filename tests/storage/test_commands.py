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
from tests.pipeline.test_align import documents_of, values_of
from tests.pipeline.test_annotation_files import annotation, raw_files
from tests.recipes import tree
from tests.storage.web_server import Behaviour, web
from toolkit.storage import store_of
from toolkit.storage.compression import compress_small, compress_zstd
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import glob_folders, join, list_files, remove

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_the_set_is_that_on_disk(tmp_path: Path, bucket: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies between inputs and set is in `TMPDIR`, and is deleted; a changed object makes the set stale."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    documents_of(tmp_path)
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        for shard in "ab":
            path = f"data/documents/{shard}.jsonl"
            write_file(join(root, path), (tmp_path / path).read_bytes())
        for part in range(2):
            rows = "".join(json.dumps(row) + "\n" for row in values_of()[part::2])
            write_file(join(root, f"values/{part}.jsonl"), rows.encode())
        config = tmp_path / "own.yaml"
        config.write_text(
            json.dumps(
                {
                    "dataset": join(root, "data"),
                    "processes": 2,
                    "align": {"v-0": {"from": join(root, "values/*.jsonl"), "id": "key.id", "values": ["quality"]}},
                    "mix": {
                        "attributes": ["v-0"],
                        "rules": [{"keep": "quality is not None and quality > 1"}],
                        "output": {"format": "dolma", "path": join(root, "out")},
                    },
                }
            )
        )
        for command in ("align", "mix", "validate", "align"):
            ran = run(command, "-c", config, "--json").succeeds()
        assert ran.json["sets"]["v-0"]["written"] == 0
        found.append(tree(join(root, "data/attributes")) | tree(join(root, "out/documents")))
    assert found[0] == found[1] != {}
    assert list((tmp_path / "tmp").iterdir()) == []
    write_file(join(bucket, "corpus/values/0.jsonl"), b'{"key": {"id": 1}, "quality": 9.0}\n')
    run("mix", "-c", config).fails(1, "run `toolkit align`")


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


def test_annotations_come_from_a_bucket_and_go_there(tmp_path: Path, bucket: str, run: Run) -> None:
    ids = raw_files(tmp_path)
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        for path in sorted((tmp_path / "raw").rglob("*.jsonl")):
            write_file(join(root, str(path.relative_to(tmp_path))), path.read_bytes())
        rows = "".join(json.dumps(annotation(id, [i % 6, None])) + "\n" for i, id in enumerate(reversed(ids)))
        write_file(join(root, "exp/generated_annotations/x__annotations_org--m_edu_en_.jsonl"), rows.encode())
        config = tmp_path / "c.yaml"
        entry = {"format": "jsonl", "from": [join(root, "raw/**/*.jsonl")], "source": "cc"}
        config.write_text(
            json.dumps(
                {
                    "dataset": join(root, "data"),
                    "executor": {"type": "in_process"},
                    "ingest": [entry],
                    "align": {"edu-0": {"from": join(root, "exp/generated_annotations")}},
                }
            )
        )
        out, tasks = join(root, "out"), join(root, "tasks.json")
        for command in (("ingest",), ("align",), *[("annotate", "--from", "edu-0", "-o", out)] * 2):
            ran = run(*command, "-c", config, "--json").succeeds()
        assert (ran.json["files"], ran.json["written"]) == (2, 0)
        assert run("annotate", "--to", "argilla", "-o", tasks, "-c", config).code == 0
        assert run("annotate", "--to", "argilla", "-o", tasks, "-c", config).code == 2
        store = store_of(out)
        files = {name: store.read(join(out, name)).replace(root.encode(), b"ROOT") for name in list_files(out)}
        found.append((files, tree(join(root, "data/attributes"))))
        write_file(join(root, "exp/generated_annotations/x__annotations_org--m_edu_en_.jsonl"), b'{"document_id": 1}\n')
        run("align", "-c", config).fails(2, "x__annotations_org--m_edu_en_.jsonl:1: expected an annotation with")
    assert found[0] == found[1]
    assert [len(each) for each in found[0]] == [2, 2]


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


@pytest.mark.s3
@pytest.mark.slow
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


def lay_out_packs(root: str, **more: Any) -> str:
    """Write small inputs and a configuration below a root; return the configuration's path."""
    for i in range(60):
        write_file(
            join(root, f"in/{i % 7}/{i:03d}.txt"), f"text {i} has words\n\n{'and lines' * (i % 5)}\n".encode() * i
        )
    config = {
        "dataset": join(root, "data"),
        "ingest": [{"format": "text", "from": join(root, "in/**/*.txt"), "source": "n", "pack": "30 kB"}],
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": join(root, "out")}},
        **more,
    }
    write_file(join(root, "c.yaml"), json.dumps(config).encode())
    return join(root, "c.yaml")


def made(root: str) -> dict[str, str]:
    return {name: digest for name, digest in tree(root).items() if name.startswith(("data/", "out/"))}


def test_packs_of_objects_are_those_of_files(bucket: str, tmp_path: Path, run: Run) -> None:
    roots = str(tmp_path / "local"), join(bucket, "corpus")
    for root in roots:
        path = lay_out_packs(root, processes=1)
        for command in ("run", "validate"):
            run(command, "-c", path).succeeds()
    local, remote = map(made, roots)
    assert remote == local
    assert 1 < sum(name.startswith("data/documents/n/") for name in local) < 20
    for root in roots:
        remove(join(root, "in/0/000.txt"))
        write_file(join(root, "in/3/more.txt"), b"one more\n")
        ran = run("run", "-c", join(root, "c.yaml"), "--json").succeeds()
        told = json.loads(ran.out)["ingest"]
        assert told["lost"] == [join(root, "in/0/000.txt")]
        assert 0 < told["skipped"] < 59
    local, remote = map(made, roots)
    assert remote == local
    assert store_of(bucket).leftovers(bucket, any_owner=True) == []


# Queries and exports in a bucket: the rows and the files are those of a disk.

pytest.importorskip("duckdb", reason="SQL needs DuckDB (extra sql)")

QUERY = (
    'SELECT shard, "row", id, text, noise.chars AS n FROM joined WHERE id NOT IN (SELECT id FROM output) ORDER BY ALL'
)


def test_rows_and_files_are_those_on_disk(tmp_path: Path, bucket: str, run: Run) -> None:
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        for shard in "ab":
            rows = [json.dumps(document(f"{shard}{i}", "x" * i)) + "\n" for i in range(20)]
            write_file(join(root, f"data/documents/{shard}.jsonl"), "".join(rows).encode())
        config = tmp_path / "c.yaml"
        config.write_text(
            json.dumps(
                {
                    "dataset": join(root, "data"),
                    "executor": {"type": "in_process"},
                    "tag": {"noise-0": ["noise"]},
                    "mix": {
                        "attributes": ["noise-0"],
                        "rules": [{"drop": "noise.chars < 5", "name": "short"}],
                        "output": {"format": "dolma", "path": join(root, "out")},
                    },
                }
            )
        )
        for command in ("tag", "mix"):
            assert run(command, "-c", config).code == 0
        asked = run("sql", QUERY, "-c", config, "--json")
        written = run("sql", QUERY, "-c", config, "--output", join(root, "exp/found.parquet"))
        exported = [run("export", "--parquet", join(root, "exp"), "-c", config, "--json") for _ in range(2)]
        assert [each.code for each in (asked, written, *exported)] == [0] * 4, asked.err + written.err
        assert [each.json["written"] for each in exported] == [{"noise-0": 2}, {"noise-0": 0}]
        found.append((asked.json["rows"], tree(join(root, "exp"))))
    assert found[0] == found[1]
    assert len(found[0][0]) == 10
    assert len(found[0][1]) >= 3


# Every configuration that ships: one pass gives the bytes of single commands, on disk and in a bucket.


@pytest.mark.s3
@pytest.mark.slow
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
