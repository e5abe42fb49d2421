"""Commands, flags and configurations of Dolma's that do not run here say what is here instead; nothing is written."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import read_rows
from tests.pipeline.dolma import SHARD, Dolma
from toolkit import command_line
from toolkit.interop.dolma import pointers


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dedupe -c x.yaml", "run `toolkit dedup -c FILE`, which reads it"),
        ("-c x.yaml dedupe", "run `toolkit dedup -c FILE`"),
        ("dedupe --documents a/*.gz --dedupe.name d", "run `toolkit dedup -c FILE`"),
        ("tokens --documents a --tokenizer.name_or_path t", "use a section `tokenize:`"),
        ("list", "run `toolkit taggers`"),
        ("stat --attributes a", "run `toolkit stats ROOT --attribute all`"),
        ("warc --documents a", "`format: warc`"),
        (
            "tag --documents a --processes 4",
            "--documents is an option of Dolma's: here settings are in a configuration",
        ),
        ("-c x.yaml mix --processes 8", "--processes is an option of Dolma's"),
        ("-c x.yaml mix --no-shuffle", "as in `toolkit -c FILE mix processes=4`"),
        ("-c x.yaml mix --work_dir.input=/x", "--work_dir.input=/x is an option of Dolma's"),
        ("tag -c x.yaml --dryrun --processes 4", "--dryrun is an option of Dolma's"),
    ],
)
def test_a_command_line_of_dolmas_is_told_what_is_here(run: Run, line: str, words: str) -> None:
    ran = run(*line.split())
    assert (ran.code, words in ran.err, ran.out) == (2, True, ""), ran.err


def test_the_configuration_that_is_shown_for_flags_runs(dolma: Dolma) -> None:
    dolma.put(["zero"])
    documents = f"{dolma.data}/documents/*.gz"
    ran = dolma.run(
        "tag", "--documents", documents, "--taggers", "char_length_v1", "--experiment", "e", "--processes=1"
    )
    assert ran.code == 2
    dolma.config = json.loads(ran.err.partition("write ")[2].partition(" into a file")[0])
    assert dolma.config["processes"] in (1, "1")
    dolma.config["processes"] = int(dolma.config["processes"])
    dolma.ok(command="tag")
    assert read_rows(dolma.data / "attributes" / "e" / SHARD)[0]["attributes"] == {
        "e__char_length_v1__length": [[0, 4, 4.0]]
    }


@pytest.mark.parametrize("command", ["mix", "tag", "run", "validate", "status"])
@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"documents": ["d"], "dedupe": {"name": "d"}, "bloom_filter": {}},
            "run `toolkit dedup -c FILE`",
        ),
        ({"bloom_filter": {"file": "x"}}, "run `toolkit dedup -c FILE`"),
        ({"documents": ["d"], "tokenizer": {"name_or_path": "t"}}, "use a section `tokenize:`"),
    ],
)
def test_a_configuration_for_another_command_of_dolmas(
    tmp_path: Path, run: Run, command: str, config: object, words: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(config))
    ran = run(command, "-c", path)
    assert (ran.code, f"{path}:1: " in ran.err, words in ran.err) == (2, True, True), ran.err
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_the_pointers_are_those_to_commands_that_there_are_or_are_not() -> None:
    assert not {*pointers.COMMANDS} & {*command_line.names()}
