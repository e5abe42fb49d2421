"""The JSON Schema of configurations: it takes what the toolkit takes, and marks what a slip of the pen makes."""

import functools
import json
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.test_docs import _blocks
from toolkit.config import settings, yaml_loader
from toolkit.interop.dolma import is_dolma
from toolkit.validate.yaml_schema import whole

MADE_UP = "shouting"
"""A tagger that a page adds."""


@functools.cache
def _schema() -> dict[str, Any]:
    return whole()


@functools.cache
def _validator() -> Any:
    import jsonschema  # which takes a second, in every process that collects tests

    return jsonschema.Draft202012Validator(_schema())


def faults(value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(value)]


def test_the_command_prints_it(run: Run) -> None:
    ran = run("config", "--schema").succeeds()
    assert json.loads(ran.out) == json.loads(json.dumps(_schema())) == run("config", "--schema", "--json").json
    assert ran.out.startswith('{\n  "$schema": "https://json-schema.org/draft/2020-12/schema"')


@pytest.mark.slow  # it takes several seconds
def test_it_is_a_json_schema() -> None:
    type(_validator()).check_schema(_schema())


def test_every_option_of_a_model_has_a_description() -> None:
    shared = {"kind", "when", "attributes"}  # of all entries, not of this kind
    for kind in ("encoder", "fasttext", "head", "linear"):
        properties = _schema()["$defs"][f"train.{kind}"]["properties"]
        assert {name for name, schema in properties.items() if "description" not in schema} == shared


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_it_takes_the_recipes(path: Any) -> None:
    assert faults(settings.load(str(path)).value) == []


@pytest.mark.parametrize(("name", "text"), _blocks("yaml"))
def test_it_takes_what_the_pages_show(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("DATA", "/home/someone/data")
    source = settings.parse(text, name)
    if not is_dolma(source):
        assert [fault for fault in faults(source.value) if MADE_UP not in fault] == []


MIX = "{attributes: [a], rules: [%s], output: {format: dolma, path: out}}"
GOOD = [
    "processes: ${CORES}",
    "max_document_bytes: ${MEGABYTES} MB",
    "storage: {give_up: 5 min, stores: {mem: 'my/store.py:Mem'}}",
    "documents: {path: archive, include: ['cc/**']}",
    "executor: {type: ray, cpus: 2}",
    "executor: {recycle: 5}",
    "ingest: [{format: 'my/reader.py:Mine', from: x, whatever: 1}]",
    "ingest: [{format: wet, crawl: CC-MAIN-2024-10, files: 0-9}]",
    "ingest: {format: wet, from: x}",
    "tag: {a: text_language, b: [length, {tagger: line_shape, as: x}], c: {taggers: [emails], without: b-0.x}}",
    "tag: {a: {tagger: 'my/tagger.py:Mine', option: 1}, b: 'my.module:Class'}",
    "dedup: {a: {kind: exact, as: x}}",
    "mix: "
    + MIX % "{drop: a.b, name: c}, {group: g, rules: [{keep: d}]}, {include: recipe:c4}, {drop: blocklist, files: x}",
    "mix: " + MIX % "{cut: lines, when: a}, {cut: b}, {sample: {de: 0.5}}, {set: x, to: 1}",
    "mix: {streams: {a: {dataset: x, sample: 0.5, weight: 2}}, output: {format: text, path: x, compression: zstd}}",
    "mix: {attributes: [{set: a, as: {b: c}}], parameters: {x: 1}, output: {format: 'm:C', path: x}}",
    "mix: {rules: [{drop: x}], languages: {de: {x: 2}}, output: {format: 'm:C', path: x}}",
    "about: {name: x, splits: {train: 0.9, test: 0.1}}",
]
BAD = {
    "a key at the top": "proceses: 4",
    "a number in words": "processes: four",
    "no processes": "processes: 0",
    "a size without sense": "max_document_bytes: 5 XB",
    "a list for a text": "dataset: [a, b]",
    "a compression": "compression: bzip2",
    "a key of storage": "storage: {endpoint: http://x}",
    "a time": "storage: {give_up: soon}",
    "a key of documents": "documents: {path: x, includes: [y]}",
    "an executor": "executor: {type: slurm}",
    "an option of an executor": "executor: {type: local, cpus: 2}",
    "an option of the default executor": "executor: {cpus: 2}",
    "an input format of an entry alone": "ingest: {format: wett, from: x}",
    "an input format": "ingest: [{format: wett, from: x}]",
    "no format": "ingest: [{from: x}]",
    "no input": "ingest: [{format: wet}]",
    "two inputs": "ingest: [{format: wet, from: x, crawl: y}]",
    "files without a crawl": "ingest: [{format: wet, from: x, files: 0-9}]",
    "an option of another format": "ingest: [{format: wet, from: x, delimiter: ';'}]",
    "a word that is none of an option's": "ingest: [{format: wet, from: x, on_error: ignore}]",
    "a number below the least": "ingest: [{format: wet, from: x, trim: {min_chars: 0}}]",
    "an option inside an option": "ingest: [{format: jsonl, from: x, fields: {texts: y}}]",
    "a tagger": "tag: {a: lenght}",
    "a tagger with options": "tag: {a: {tagger: lenght}}",
    "an option of a tagger": "tag: {a: {tagger: line_shape, short_char: 3}}",
    "a value of an option of a tagger": "tag: {a: {tagger: line_shape, short_chars: many}}",
    "an option that a tagger must have": "tag: {a: tokens}",
    "the same, written out": "tag: {a: {tagger: tokens}}",
    "a tagger in a list": "tag: {a: [length, lenght]}",
    "no tagger": "tag: {a: []}",
    "an option beside taggers": "tag: {a: {taggers: [length], as: b}}",
    "the name of a set": "tag: {a.b: length}",
    "a kind of duplicates": "dedup: {a: {kind: exakt}}",
    "no kind of duplicates": "dedup: {a: {by: text}}",
    "an option of a kind": "dedup: {a: {kind: exact, treshold: 1}}",
    "a sample among duplicates": "dedup: {a: {kind: sample, documents: 1}}",
    "an option of a sample": "sample: {a: {document: 1}}",
    "a key of mix": "mix: {attribute: [a], output: {format: dolma, path: x}}",
    "attributes as a text": "mix: {attributes: a, output: {format: dolma, path: x}}",
    "an output format": "mix: {output: {format: oskar, path: x}}",
    "an option of an output": "mix: {output: {format: oscar, path: x, shema: '23.01'}}",
    "an output without a path": "mix: {output: {format: oscar}}",
    "a compression beside Parquet": "mix: {output: {format: parquet, path: x, compression: zstd}}",
    "a part size": "mix: {output: {format: oscar, path: x, part_size: 1 gigabyte}}",
    "what happens to failed shards": "mix: {on_failed_shard: skip, output: {format: oscar, path: x}}",
    "a rule": "mix: " + MIX % "{dropp: x}",
    "two rules in one": "mix: " + MIX % "{drop: x, keep: y}",
    "an option of a rule": "mix: " + MIX % "{drop: x, names: y}",
    "a replacement without a text": "mix: " + MIX % "{replace: x}",
    "an annotation without a condition": "mix: " + MIX % "{annotate: x}",
    "an option of a blocklist beside another rule": "mix: " + MIX % "{drop: x, files: y}",
    "a blocklist without files": "mix: " + MIX % "{drop: blocklist}",
    "a rule in a group": "mix: " + MIX % "{group: x, rules: [{drop: x, nam: y}]}",
    "a share above 1": "mix: {streams: {a: {sample: 2}}, output: {format: oscar, path: x}}",
    "a weight of nothing": "mix: {streams: {a: {weight: 0}}, output: {format: oscar, path: x}}",
    "an option of a stream": "mix: {streams: {a: {datasets: x}}, output: {format: oscar, path: x}}",
    "a key of about": "about: {licence: x}",
}  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_it_takes_what_the_toolkit_takes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "_substitute", lambda loader, value, path, source: value)  # as an editor sees it
    assert faults(settings.parse(text).value) == []


@pytest.mark.parametrize("slip", BAD)
def test_it_marks_a_slip(slip: str) -> None:
    assert faults(settings.parse(BAD[slip]).value) != []


def test_it_says_what_settings_are_and_what_stands_for_nothing() -> None:
    schema = _schema()
    assert schema["properties"]["processes"]["description"].startswith("number of shards that are worked on at a time")
    assert schema["properties"]["max_document_bytes"]["default"] == 100_000_000
    length = schema["$defs"]["tagger.line_shape"]
    assert length["description"].startswith("Numbers of lines")
    assert {"tagger", "as", "without", "short_chars"} <= length["properties"].keys()


def test_settings_are_shown_as_a_command_has_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("config", "-c", "recipe:c4", "processes=3", "mix.output.path=${HOME}/out", "--json")
    assert (ran.json["settings"]["processes"], ran.json["settings"]["max_document_bytes"]) == (3, 100_000_000)
    shown = settings.parse(run("config", "-c", "recipe:c4", "processes=3").out)
    assert (shown.value["processes"], faults(shown.value)) == (3, [])


@pytest.mark.parametrize("given", [[], ["--schema", "-c", "x"], ["--schema", "processes=3"], ["processes=3"]])
def test_it_is_either_of_the_two(given: list[str], run: Run) -> None:
    ran = run("config", *given)
    assert (ran.code, ran.err) == (2, "error: expected either a configuration (-c FILE), or --schema alone\n")
