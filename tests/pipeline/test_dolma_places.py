"""Where Dolma has documents: the order of its globs, every suffix of a shard, other places for attributes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows
from tests.pipeline.dolma import SHARD, Dolma, filtered, outputs
from tests.recipes import mix_of
from toolkit import command_options
from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.data.schema import FLOAT, SPANS
from toolkit.interop import dolma as interop
from toolkit.rules.checker import Name
from toolkit.rules.filters import matcher
from toolkit.rules.kinds.drop import Drop, Keep
from toolkit.rules.ruleset import RuleSet
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
        *slow(
            (["**/*.gz"], "10/x 9/x B/z a/sub/q a/x a-b/x a0/x b/a b/y z é/x"),
            (["b/*.gz", "a/*.gz", "*/x.gz"], "b/a b/y a/x 10/x 9/x a-b/x a0/x é/x"),
            (["[ba]/*.gz"], "a/x b/a b/y"),
        ),
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


@pytest.mark.slow
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


@pytest.mark.parametrize("suffix", slow(*SHARD_SUFFIXES))
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


@pytest.mark.parametrize("suffix", [".jsonl.zstd", *slow(".json.zst", ".gz")])
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


# Attributes that Dolma's filters ask for and that no row has: told before anything is mixed, whoever wrote them.

AT = "$@.attributes[?(@.test && @.test[0] && @.test[0][2] >= 0.5)]"
UNKNOWN = [
    ({"include": ["$.attributes.toxi"]}, "got 'toxi'; did you mean 'toxic'?"),
    ({"include": ["$.attributes[?(@.toxi[0][2] > 0.5)]"]}, "got 'toxi'; did you mean 'toxic'?"),
    ({"include": ["$.attributes.zzz"]}, "got 'zzz'; there are: s, toxic"),
    ({"include": ["$.attributes.toxi", "$.attributes.toxic"]}, "got 'toxi'; did you mean 'toxic'?"),
    ({"exclude": ["$@.attributes[?(@.toxi > 0)]"]}, "did you mean 'toxic'?; if no document has it, leave"),
    ({"exclude": [".attributes.toxi > 1"], "syntax": "jq"}, "if documents may lack it, write `toxi?`"),
    ({"include": ['.["attributes"].toxi[0]'], "syntax": "jq"}, "write `toxi?`"),
    ({"include": [".attributes | (.toxi)"], "syntax": "jq"}, "write `toxi?`"),
    ({"include": ['.attributes."toxi"[0][-1] > 1'], "syntax": "jq"}, "write `toxi?`"),
]


def put(dolma: Dolma, values: list[Any], *, inline: bool) -> None:
    """Writes documents with these attributes, beside them or in them."""
    if not inline:
        dolma.put([f"text {i}" for i in range(len(values))], values)
        return
    dolma.put([document(f"d{i}", f"text {i}") | {"attributes": value} for i, value in enumerate(values)])
    dolma.stream["attributes"] = []


@pytest.mark.parametrize("inline", [False, *slow(True)], ids=["beside", "inline"])
@pytest.mark.parametrize(("how", "words"), UNKNOWN)
def test_an_attribute_that_no_row_has_is_refused(dolma: Dolma, how: dict[str, Any], words: str, inline: bool) -> None:
    put(dolma, [{"s": [], "toxic": 1}], inline=inline)
    filtered(dolma, **how)
    dolma().fails(2, words)
    assert not dolma.out.exists()


@pytest.mark.parametrize("inline", [False, *slow(True)], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("how", "ids"),
    [
        ({"include": [AT]}, ["d1"]),
        ({"exclude": [AT]}, ["d0", "d2"]),
        ({"include": [".attributes.test[0]?[2]? > 0.1", ".attributes.few"], "syntax": "jq"}, ["d0", "d1", "d2"]),
        ({"exclude": ['.text == ".attributes.zzz" # .attributes.zz'], "syntax": "jq"}, ["d0", "d1", "d2"]),
        ({"exclude": [".attributes.toxi? > 1", "(.attributes.toxi // 0) > 1"], "syntax": "jq"}, ["d0", "d1", "d2"]),
    ],
)
def test_attributes_that_some_row_has_are_known(
    dolma: Dolma, how: dict[str, Any], ids: list[str], inline: bool
) -> None:
    put(dolma, [{"test": [[0, 1, 0.25]]}, {"test": [[0, 1, 0.5]]}, {"few": 1}], inline=inline)
    filtered(dolma, **how)
    ran = dolma.ok()
    assert list(dolma.texts()) == ids
    assert "expected an attribute" not in ran.err


@pytest.mark.parametrize("inline", [False, *slow(True)], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("values", "asked", "warns"),
    [
        ({"e__pii__EMAIL": [[0, 1, 1.0]]}, "e__pii__PHONE", True),  # a tagger that found no number
        ({"e__hosts_porn__url": [[0, 1, 1.0]]}, "e__hosts_games__url", True),  # a tagger that found nothing
        ({"exp__pii__EMAIL": [[0, 1, 1.0]]}, "xp__pii__EMAIL", False),  # a slip
        ({"toxic": 0.1}, "toxi", False),
        ({"toxicity": 0.1}, "dummy", True),  # as one of Dolma's own tests has it
        ({}, "dup_par", True),  # a deduper that found nothing
    ],
)
def test_a_key_that_may_be_rare_only_warns(
    dolma: Dolma, values: dict[str, Any], asked: str, warns: bool, inline: bool
) -> None:
    put(dolma, [values], inline=inline)
    warns = warns and not (inline and not values)
    for how in ({"exclude": [f"$.attributes.{asked}"]}, None):
        if how:
            filtered(dolma, **how)
        else:
            dolma.stream.pop("filter")
            dolma.stream["span_replacement"] = [{"span": f"$.attributes.{asked}", "min_score": 0.5}]
        ran = dolma()
        assert ran.code == (0 if warns else 2), ran.err
        assert ("warning: " in ran.err) == warns
        assert f"got {asked!r}" in ran.err
    filtered(dolma, include=[f"$.attributes.{asked}"])  # which would drop everything
    dolma.stream.pop("span_replacement", None)
    assert dolma().code == 2


def test_a_share_that_lacks_an_attribute_leaves_the_error_to_the_whole(dolma: Dolma) -> None:
    for shard, value in (("a.json.gz", {"toxic": 1}), ("b.json.gz", {"s": 1})):
        dolma.put(["zero"], [value], shard)
    filtered(dolma, include=["$.attributes.toxic"])
    dolma.ok("--shard", "0/2")
    dolma.ok("--shard", "1/2")
    dolma.ok()
    assert list(dolma.texts()) == ["d0"]
    dolma.stream["filter"]["include"] = ["$.attributes.toxi"]
    before = tree(dolma.out)
    assert dolma().code == 2
    assert tree(dolma.out) == before


# --- rows that are none, values that a rule cannot use ----------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [[], *slow(["--dry-run"], ["--explain", "d1"])], ids=["mix", "dry-run", "explain"]
)
@pytest.mark.parametrize(
    ("rule", "bad", "words"),
    [
        ({"drop": "k > 1"}, {"k": "x"}, "TypeError: '>' not supported between"),
        ({"drop": "k > 1", "when": "document.chars > 0"}, {"k": [1]}, "TypeError"),
        ({"drop": ".attributes.k > 1 and .attributes.k[0]", "syntax": "jq"}, {"k": "x"}, "Cannot index string"),
        ({"replace": "k", "by": "_"}, {"k": "x"}, "expected spans, a list of [start, end, score]"),
        ({"cut": "$.attributes.k", "syntax": "jsonpath"}, {"k": {"a": 1}}, "expected spans"),
    ],
)
def test_a_wrong_value_in_a_foreign_file_names_that_file_and_row(
    project: Project, rule: dict[str, Any], bad: Any, words: str, arguments: list[str]
) -> None:
    good = {"k": [[0, 1, 1.0]]} if rule.keys() & {"replace", "cut"} else {"k": 1}
    foreign(project, [attributes("d0", good), attributes("d1", bad)], rule)
    ran = project("mix", *arguments).fails(1, f"{project.attributes}/m/x.jsonl.gz:2: ")
    assert (words in ran.err, "(document 'd1')" in ran.err) == (True, True), ran.err


@pytest.mark.parametrize("row", [{"id": "d1", "source": "s"}, attributes("d1", "none"), attributes("d1", None)])
def test_a_foreign_row_without_attributes_is_named(project: Project, row: dict[str, Any]) -> None:
    foreign(project, [attributes("d0", {"k": 1}), row], {"drop": "k > 1"})
    for arguments in ([], ["--dry-run"]):
        ran = project("mix", *arguments).fails(1, f"{project.attributes}/m/x.jsonl.gz:2: expected ")
        assert ("attributes" in ran.err.rpartition(":2: ")[2], "'d1'" in ran.err) == (True, True), ran.err
    assert not project.out.exists()


def foreign(project: Project, rows: list[Any], rule: dict[str, Any]) -> None:
    """Lays out two documents, a set that another program made, and a mix with a rule."""
    write_rows(project.documents / "x.jsonl.gz", [document("d0", "zero"), document("d1", "one")])
    write_rows(project.attributes / "m" / "x.jsonl.gz", rows)
    output = {"format": "dolma", "path": str(project.out)}
    project.config = {"dataset": str(project.data), "mix": {"attributes": ["m"], "rules": [rule], "output": output}}


# How many documents are kept or dropped otherwise than by Dolma, to whose JSONPath 1 and 1.0 are two numbers.

VALUES: list[Any] = [{"k": [[0, 1, 1]]}, {"k": [[0, 1, 1.0]]}, {"k": [[0, 1, 2]]}, {"k": [[0, 1, 0.5]]}, {}]


def numbers(dolma: Dolma, *, inline: bool = False) -> tuple[int, int, list[str]]:
    """Return the numbers that a dry run and a mix tell, which must agree with what they show; and who stays."""
    dry = dolma.ok("--dry-run", "--json").json["unlike_dolma"]
    shown = dolma.ok("--dry-run").out
    ran = dolma.ok().out
    told = f"warning: {dry} of 5 documents {'is' if dry == 1 else 'are'} kept or dropped otherwise than by Dolma"
    for text in (shown, ran, dolma.ok().out):
        assert (told in text, "`compat: strict`" in text) == (bool(dry), bool(dry))
    return dry, dolma.ok("--json").json["unlike_dolma"], sorted(dolma.texts())


@pytest.mark.slow
@pytest.mark.parametrize("inline", [False, True], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("how", "unlike"),
    [
        ({"exclude": ["$@.attributes[?(@.k && @.k[0] && @.k[0][2] >= 1.0)]"]}, 1),
        ({"include": ["$.attributes[?(@.k[0][2] == 1)]"]}, 1),
        ({"exclude": ["$.attributes[?(@.k[0][2] != 1)]", "$.attributes[?(@.k[0][2] > 1.5)]"]}, 1),
        ({"exclude": ["$.attributes[?(@.k[0][2] >= 1.0)]", "$.attributes.k"]}, 0),  # another pattern drops it anyway
        ({"exclude": ["$.attributes[?(@.k[0][2] >= 0.5)]"]}, 0),
        ({"exclude": ["$.attributes[?(@.k[0][2] > 1.0)]"]}, 0),
        ({"exclude": ["$.attributes[?(@.k[0][2] in [1.0, 2.0])]"]}, 2),
        ({"exclude": ["$.attributes.k[?(@[2] <= 2.0)]"]}, 1),
        ({"exclude": ["$..k[?(@[2] >= 1.0)]"]}, 1),
        ({"exclude": [".attributes.k[0]?[2]? == 1.0"], "syntax": "jq"}, 0),
    ],
)
def test_the_number_is_that_of_documents_which_strict_decides_otherwise(
    dolma: Dolma, how: dict[str, Any], unlike: int, inline: bool
) -> None:
    if inline:
        dolma.put([document(f"d{i}", "text") | {"attributes": value} for i, value in enumerate(VALUES)])
        dolma.stream["attributes"] = []
    else:
        dolma.put(["text"] * len(VALUES), VALUES)
    filtered(dolma, **how)
    dry, mixed, kept = numbers(dolma)
    assert dry == mixed
    dolma.config["compat"] = "strict"
    assert numbers(dolma)[:2] == (0, 0)
    assert len(set(kept) ^ set(dolma.texts())) == dry == unlike


SCORES = st.sampled_from([0, 1, 1.0, 2, 2.0, 0.5, -1])
PATTERNS = st.sampled_from(
    [
        "$.attributes[?(@.k[0][2] {} {})]",
        "$.attributes.k[?(@[2] {} {})]",
        "$.attributes[?(!@.k || @.k[1][2] {} {})]",
        "$.attributes[?(!(@.f {} {}))]",
        "$.attributes[?(@.f {} {} && @.k[0])]",
    ]
)


@given(
    patterns=st.lists(
        st.builds(str.format, PATTERNS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), SCORES.map(json.dumps)),
        min_size=1,
        max_size=3,
    ),
    scores=st.lists(SCORES, max_size=2),
    f=SCORES | st.none(),
    kind=st.sampled_from([Keep, Drop]),
)
def test_doubts_miss_nothing(patterns: list[str], scores: list[float], f: float | None, kind: type[Drop]) -> None:
    values: dict[str, Any] = {"k": [[0, 1, score] for score in scores]} | ({} if f is None else {"f": f})
    names = {"k": Name(SPANS, "k"), "f": Name(FLOAT, "f", FLOAT)}
    rules = RuleSet([kind(name="r", patterns=patterns, syntax="jsonpath")], names, ("k", "f", "document"))

    class Joined:
        joined = {"attributes": values}

    def stays(*, strict: bool) -> bool:
        matches = any(matcher(p, "jsonpath", strict=strict)(Joined.joined) for p in patterns)
        return matches if kind is Keep else not matches

    document = Joined()
    outcome = rules.decide([tuple(span) for span in values["k"]], f, document)
    assert rules.differs(outcome, [tuple(span) for span in values["k"]], f, document) == (
        stays(strict=True) != stays(strict=False)
    )


# Commands, flags and configurations of Dolma's that do not run here say what is here instead; nothing is written.


def test_the_configuration_that_is_shown_for_flags_runs(dolma: Dolma) -> None:
    dolma.put(["zero"])
    documents = f"{dolma.data}/documents/*.gz"
    ran = dolma.run(
        "tag", "--documents", documents, "--taggers", "char_length_v1", "--experiment", "e", "--processes=1"
    ).fails(2)
    dolma.config = json.loads(ran.err.partition("write ")[2].partition(" into a file")[0])
    assert dolma.config["processes"] in (1, "1")
    dolma.config["processes"] = int(dolma.config["processes"])
    dolma.ok(command="tag")
    assert read_rows(dolma.data / "attributes" / "e" / SHARD)[0]["attributes"] == {
        "e__char_length_v1__length": [[0, 4, 4.0]]
    }


def test_the_pointers_are_those_to_commands_that_there_are_or_are_not() -> None:
    assert not {*interop.COMMANDS} & {*command_options.names()}
