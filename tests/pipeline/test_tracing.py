"""A document can be followed from the item of its input to the output, also one that ingest has left out."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolkit
from mixers._token_files import KINDS
from tests.pipeline.conftest import Project, document, read_bytes, tree, write_rows
from tests.pipeline.test_warc import HTML, http, page, record, write_warc
from toolkit.text import TraceFile
from toolkit.text.tokens.orders import FileOfTokens, Order, megatron_order, modalities_order, olmo_core_order
from toolkit.text.tokens.tokenizer import Tokenizer
from toolkit.text.tokens.trace import original_span

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("format_", ["dolma", "parquet"])
def test_the_place_of_a_document_is_not_that_of_another_source_with_its_id(project: Project, format_: str) -> None:
    for source in ("s", "t"):
        write_rows(
            project.documents / source / "a.jsonl.gz",
            [document(str(i), f"Text {i} of {source}.", source) for i in "12"],
        )
    project.config["tag"] = {"length-0": "length"}
    rules = [{"drop": 'document.source == "s" and document.id == "1"', "name": "one"}]
    project.mixes(*rules, attributes=["length-0"], format=format_)
    project.ok("run")
    for id, places in (("1", [[], ["2"]]), ("2", [["1"], ["3"]])):
        for command in (("head", "--id"), ("trace", "--id"), ("mix", "--explain")):
            rows = project.ok(*command, id, "--json").json["documents"]
            assert [row["source"] for row in rows] == ["s", "t"]
            ends = [[re.findall("[0-9]+$", place)[0] for place in row.get("output", [])] for row in rows]
            assert ends == places, command


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


# ``toolkit trace``: from tokens to documents and their text, from documents to tokens, and the order of training.

tokenizers = pytest.importorskip("tokenizers")

WORDS = [
    "the",
    "cat",
    "hat",
    "größe",
    "图书馆",
    "👩\u200d🚀",
    "</s>",
    "é",
    "a@b.org",
    "",
    "\t\n\n",
    "don't",
    "1234",
    "ſ",
]
BYTES = str(Path(__file__).parents[1] / "taggers" / "files" / "tokenizer.json")


def texts_of(number: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.choice((0, 1, 5, 40, 400)))) for _ in range(number)]


def unlike_bytes(path: Path) -> str:
    """A tokenizer that changes the text, with a blank before it, and bytes for what it does not know."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = tokenizers.normalizers.NFKC()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    )
    tokenizer.train_from_iterator(["the cat has a hat, größe don't 1234"] * 9, trainer)
    tokenizer.save(str(path))
    return str(path)


def lay_out(project: Project, files: str, **output: Any) -> dict[tuple[str, int], str]:
    """Three shards, of which rules edit and repeat documents, with tokens as output; return the texts."""
    found: dict[tuple[str, int], str] = {}
    for i in range(3):
        texts = texts_of(40, i)
        rows = [document(f"{i}-{j}", text) for j, text in enumerate(texts)]
        write_rows(project.documents / "a" / f"{i}.jsonl.gz", rows)
        found |= {(f"a/{i}.jsonl.gz", j): text for j, text in enumerate(texts, 1)}
    project.config |= {"dataset": str(project.data), "tag": {"emails-0": {"tagger": "emails"}}}
    project.config["mix"] = {
        "attributes": ["emails-0"],
        "rules": [
            {"drop": "document.chars == 0", "name": "empty"},
            {"replace": "emails", "by": "|||EMAIL|||"},
            {"repeat": 3, "when": "document.chars < 20"},
        ],
        "output": {"format": "tokens", "path": str(project.out), "tokenizer": BYTES, "eod": "</s>", "files": files}
        | output,
    }
    return found


def edited(text: str, start: int, end: int, edits: list[Any]) -> str:
    pieces, at = [], start
    for first, behind, length in edits:
        pieces += [text[at : max(at, first)], "|||EMAIL|||"]
        assert length == len("|||EMAIL|||")
        at = behind
    return "".join([*pieces, text[at:end]])


FORMS = [
    {},
    {"shuffle": {"seed": 3}},
    {"sequence_length": 64},
    {"sequence_length": 48, "packing": "fit", "pad": "<s>", "shuffle": {"seed": 1}},
    {"bos": "<s>", "literal": True, "part_size": 2000},
]


@pytest.mark.parametrize(
    ("files", "output"),
    [*(("numpy", form) for form in FORMS), *((kind, FORMS[3]) for kind in KINDS if kind != "numpy")],
)
def test_tokens_are_of_exactly_the_text_of_their_document(project: Project, files: str, output: dict[str, Any]) -> None:
    texts = lay_out(project, files, **output)
    project.ok("run")
    project.ok("validate", project.out)
    library = Tokenizer(BYTES, literal=True)
    seen = set()
    for path in sorted(project.out.rglob(f"*{KINDS[files].SUFFIX}")):
        if path.name.endswith((".index.npy", ".documents.npy")):
            continue
        trace = TraceFile(str(path))
        rng = np.random.default_rng(0)
        for piece in trace.pieces():
            origin = piece.origin
            text = texts[origin.shard, origin.row]
            assert (origin.source, origin.id) == ("s", f"{origin.shard[2]}-{origin.row - 1}")
            seen.add((origin.shard, origin.row, origin.copy))
            ends = rng.integers(piece.first, piece.end + 1, (20, 2))
            for first, end in [(piece.first, piece.end), *((int(a), int(b)) for a, b in np.sort(ends) if a < b)]:
                start, behind, edits = trace.span(piece, first, end)
                tokens = trace.numbers(first, end).tolist()
                written = library.decode(tokens)
                got = edited(text, start, behind, edits)
                if output.get("bos") and first == piece.first:
                    written = written.removeprefix("<s>")
                if end == piece.end and written != got:
                    written = written.removesuffix("</s>")
                if "\ufffd" in written:  # a part of a character stands for all of it
                    assert written.strip("\ufffd") in got
                elif not (edits and (edits[0][0] <= start or edits[-1][1] >= behind)):  # a part of what was written
                    assert written == got, (origin, first, end)
    kept = {(shard, row, copy) for (shard, row), text in texts.items() for copy in range(1, 4) if text}
    kept = {key for key in kept if files != "dolma" or texts[key[:2]].strip()}
    assert seen == {key for key in kept if key[2] == 1 or len(texts[key[:2]]) < 20}


def test_a_tokenizer_that_changes_texts_is_traced_too(project: Project, tmp_path: Path) -> None:
    texts = lay_out(
        project,
        "pbin",
        tokenizer=unlike_bytes(tmp_path / "metaspace.json"),
        bos="<s>",
        sequence_length=50,
        packing="fit",
    )
    project.ok("run")
    trace = TraceFile(str(project.out / "tokens.pbin"))
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "metaspace.json"))
    pieces: dict[tuple[str, int], list[Any]] = {}
    for piece in trace.pieces():
        if piece.origin.copy == 1 and not piece.origin.edits:
            pieces.setdefault((piece.origin.shard, piece.origin.row), []).append(piece)
    for key, of_document in pieces.items():
        offsets = library.encode(texts[key], add_special_tokens=False).offsets
        places = [(0, 0), *offsets, (len(texts[key]),) * 2]
        found = [trace.span(piece, at, at + 1)[:2] for piece in of_document for at in range(piece.first, piece.end)]
        assert [start for start, _ in found] == [start for start, _ in places[: len(found)]]


def test_the_command_goes_both_ways(project: Project) -> None:
    texts = lay_out(project, "megatron", ids=False)
    project.ok("run")
    file = project.out / "tokens.bin"
    without = json.loads(project.run("trace", "--tokens", f"{file}:100-300", "--json").out)["pieces"]
    assert {piece["id"] for piece in without} == {None}
    found = project.ok("trace", "--tokens", f"{file}:100-300", "--json").json
    assert found["pieces"][0]["tokens"][0] == 100
    assert found["pieces"][-1]["tokens"][1] == 300
    for piece, one in zip(found["pieces"], found["documents"], strict=False):
        assert piece["id"] == one["id"]
        assert one["steps"][0]["rule"] == "empty"
        assert "emails" in one["attributes"]
    first = found["pieces"][0]
    back = project.ok("trace", "--id", first["id"], "--json").json
    assert any(p["tokens"][0] <= 100 < p["tokens"][1] for p in back["pieces"])
    assert {(p["shard"], p["row"]) for p in back["pieces"]} == {(first["shard"], first["row"])}
    key, text = next((key, text) for key, text in texts.items() if len(text) > 500)
    of_text = project.ok("trace", "--text", text[100:140], "--json").json
    assert {"shard": key[0], "row": key[1], "span": [100, 140]}.items() <= of_text["matches"][0].items()
    piece = next(p for p in of_text["pieces"] if (p["shard"], p["row"]) == key)
    assert piece["span"][0] <= 100
    assert piece["span"][1] >= 140
    assert toolkit.trace(tokens=f"{file}:0-1").pieces[0].row >= 1
    for wrong in ([], ["--tokens", f"{file}:9-9"], ["--tokens", f"{file}:0-99999999"], ["--step", "1"]):
        project("trace", *wrong).fails(2, "expected")


def test_a_trace_depends_on_no_path_and_needs_no_tokenizer(project: Project, tmp_path: Path) -> None:
    traces, spans = [], []
    for name in ("one", "moved/to/another"):
        copy = tmp_path / name / "tokenizer.json"
        copy.parent.mkdir(parents=True)
        copy.write_bytes(Path(BYTES).read_bytes())
        lay_out(project, "megatron", tokenizer=str(copy))
        project.ok("run")
        copy.unlink()
        traces.append((project.out / "tokens.bin.trace").read_bytes())
        spans.append([piece.span for piece in toolkit.trace(tokens=f"{project.out}/tokens.bin:7-300").pieces])
        shutil.rmtree(project.out)
    assert traces[0] == traces[1]
    assert spans[0] == spans[1]


def test_tokens_without_a_mix_are_listed_once(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("1", "one text"), document("2", "two texts")])
    project.config["tokenize"] = {"path": str(project.out), "tokenizer": BYTES, "eod": "</s>", "files": "pbin"}
    project.ok("tokenize")
    found = project.ok("trace", "--text", "wo text", "--json").json
    assert [(piece["row"], piece["span"]) for piece in found["pieces"]] == [(2, [1, 8])]
    trace = project.out / "tokens.pbin.trace"
    trace.write_bytes(trace.read_bytes()[:-1] + b"\1")
    project("trace", "--tokens", f"{project.out}/tokens.pbin:0-1").fails(
        1, "an old form; delete it, and run `toolkit tokenize`"
    )
    trace.unlink()
    project.ok("tokenize")
    project.ok("trace", "--tokens", f"{project.out}/tokens.pbin:0-1")


def test_spans_of_edited_texts_are_those_of_the_original() -> None:
    text, edits = "ab EMAIL cd\nCUT\nef", [(3, 8, 2), (12, 16, 0)]  # "ab XY cd\nef"
    assert text[:3] + "XY" + text[8:12] + text[16:] == "ab XY cd\nef"
    for span, wanted in {
        (0, 3): (0, 3),
        (0, 4): (0, 8),
        (3, 4): (3, 8),
        (4, 6): (3, 9),
        (5, 9): (8, 12),
        (8, 10): (11, 17),
        (9, 11): (16, 18),
        (11, 11): (18, 18),
        (0, 11): (0, 18),
    }.items():
        assert original_span(*span, edits)[:2] == wanted, span
    assert [len(original_span(*span, edits)[2]) for span in ((0, 3), (3, 4), (8, 10), (9, 11), (0, 11))] == [
        0,
        1,
        1,
        0,
        2,
    ]


# --- the order of training --------------------------------------------------------------------------------------------


def test_orders_are_those_of_the_programs() -> None:
    """Held against their own code by hand: these are its answers."""
    torch = [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]  # torch.manual_seed(0); torch.randperm(10)
    assert [each.tolist() for each in modalities_order(10, 0, 0, 2, shuffle=True)] == [torch[::2], torch[1::2]]
    rows = olmo_core_order(11, 6, 1, 2, 4)
    order = np.arange(11, dtype=np.uint32)
    np.random.Generator(np.random.PCG64(seed=7)).shuffle(order)
    assert np.stack(rows, 1).reshape(-1).tolist() == order[:8].tolist()
    documents, samples = megatron_order(np.array([5, 3, 9, 4]), 4, seed=1, samples=9)
    assert sorted(documents.tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(samples.tolist()) == list(range(10))


@pytest.mark.parametrize("reader", ["megatron", "olmo_core", "modalities"])
def test_a_step_of_training_is_traced(project: Project, reader: str) -> None:
    files = {"megatron": "megatron", "olmo_core": "dolma", "modalities": "pbin"}[reader]
    lay_out(project, files)
    project.ok("run")
    path = project.out / f"tokens{KINDS[files].SUFFIX}"
    order = {"reader": reader, "files": [str(path)], "sequence_length": 32, "batch": 8, "ranks": 2, "seed": 5}
    found = toolkit.trace(step=2, of=order).pieces
    size = sum(piece.tokens[1] - piece.tokens[0] for piece in found)
    assert size == 8 * (33 if reader == "megatron" else 32)
    assert [piece.rank for piece in found] == sorted(piece.rank for piece in found)
    assert "expected a step from 1 to" in project("trace", "--step", "999999", "--of", yaml(project, order)).err
    assert "expected a multiple" in project("trace", "--step", "1", "--of", yaml(project, order | {"ranks": 3})).err


def yaml(project: Project, order: dict[str, Any]) -> str:
    (project.root / "order.yaml").write_text(json.dumps(order))
    return str(project.root / "order.yaml")


def test_documents_of_megatron_are_read_where_they_lie() -> None:
    lengths = np.array([5, 3, 9, 4])
    file = FileOfTokens(21, lambda: lengths)
    order = Order(reader="megatron", files=["x"], sequence_length=4, batch=1, seed=1)
    documents, samples = megatron_order(lengths, 4, 1)
    stream = [token for i in documents for token in range(sum(lengths[:i]), sum(lengths[: i + 1]))]
    for step, sample in enumerate(samples.tolist(), 1):
        read = [token for each in order.step(step, [file]) for token in range(each.first, each.end)]
        assert read == stream[sample * 4 : sample * 4 + 5]
