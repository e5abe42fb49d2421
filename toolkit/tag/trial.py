"""Taggers on the command line, documents to try, and speed.

Nothing is written.
"""

import copy
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import SHARD_SUFFIXES, Dataset
from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER, Document, Rows, split_lines, to_document
from toolkit.errors import ConfigError, DataError, did_you_mean
from toolkit.plugins import default_name
from toolkit.storage.paths import exists, is_folder, strip_suffix
from toolkit.storage.reading import Decompressed, Lines
from toolkit.tag import plan as tag_plan, schema_check, tagger_docs
from toolkit.tag.plan import Plan, Step
from toolkit.tag.run import run_steps
from toolkit.tag.tagger import TAGGERS
from toolkit.text.batch import Batch, Column, in_blocks

STANDARD_INPUT = "standard input"


class Tried(NamedTuple):
    """Document and its origin."""

    document: Document
    place: str


# --- taggers ----------------------------------------------------------------------------------------------------------


def entries_of(arguments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the taggers of arguments by key, as in a configuration.

    Args:
        arguments: ``NAME``, ``path/file.py:Class``, ``path/file.py`` (all that are in it), ``package.module:Class``, or
            ``{tagger: NAME, option: …}``.

    Raises:
        ConfigError: if one is not of these forms, or two have the same key.
    """
    results: dict[str, dict[str, Any]] = {}
    for argument in arguments:
        for entry in _read_argument(argument):
            key = entry.get("as") or default_name(entry["tagger"])
            if key in results:
                raise ConfigError(
                    f"expected each tagger once, got {key!r} twice; "
                    f"give one another name: '{{tagger: {entry['tagger']}, as: NAME}}'"
                )
            results[str(key)] = entry
    return results


def _read_argument(argument: str) -> list[dict[str, Any]]:
    if argument.endswith(".py"):
        results = TAGGERS.in_file(argument)
        if not results:
            raise ConfigError(f"{argument}: expected a class that extends toolkit.Tagger, got a file without one")
        return [{"tagger": reference} for reference in results]
    read = settings.parse(argument, "command line").value if argument.lstrip().startswith("{") else {"tagger": argument}
    if not isinstance(read, dict) or not isinstance(read.get("tagger"), str):
        raise ConfigError(f"expected a tagger's name, or {{tagger: NAME, as: ALIAS, option: …}}, got {argument!r}")
    return [read]


def plan_of(entries: Mapping[str, dict[str, Any]], overrides: Sequence[str], *, complete: bool = False) -> Plan:
    """Return the plan of such taggers; each is a set of its own, called as its key.

    Args:
        entries: Entries by key.
        overrides: ``KEY.option=value``.
        complete: True if taggers that others read are added where they are not named.

    Raises:
        ConfigError: if one is not there, or not configured as it must be.
    """
    source = ConfigNode(copy.deepcopy(dict(entries)))
    for assignment in overrides:
        key = key_of(assignment)
        if key not in entries:
            hint = did_you_mean(key, entries) or f"; there are: {', '.join(entries)}"
            raise ConfigError(f"{assignment!r}: expected TAGGER.OPTION=VALUE, got no tagger {key!r}{hint}")
        settings.override(source, assignment)
    _connect(source, complete=complete)
    return tag_plan.read_section(source)


def key_of(assignment: str) -> str:
    """Return the tagger in ``KEY.option=value``."""
    return assignment.partition("=")[0].partition(".")[0]


def _connect(source: ConfigNode, *, complete: bool) -> None:
    """Connect required options to the attributes of the given taggers."""
    todo = list(source.value)
    for key in todo:
        entry = source.value[key]
        with source.errors_at():
            class_ = TAGGERS.find(entry["tagger"])
        for read in tagger_docs.reads(class_):
            if not read.required or read.option in entry:
                continue
            name, *fields = read.key.split(".")
            if name not in source.value:
                if not complete or name not in TAGGERS.names():
                    raise ConfigError(
                        f"tagger {key} reads {read.key!r}: name the tagger {name} too, or give {key}.{read.option}=KEY"
                    )
                source.value[name] = {"tagger": name}
                todo.append(name)
            entry[read.option] = ".".join([name, name, *fields])


def steps_of(plan: Plan) -> list[Step]:
    """Return the configured taggers of a plan in order of their reads.

    All that they read is in the plan.

    Raises:
        ConfigError: if one reads what is not there, or not of the type that it takes, or a model is not there.
    """
    steps = tag_plan.build(plan)
    for step in steps:
        for reference in step.references:
            if reference.set not in plan.sets:
                hint = did_you_mean(reference.set, plan.sets) or f"; there are: {', '.join(plan.sets)}"
                where = f"{step.entry.place}: {reference.option}: {reference.text!r}"
                raise ConfigError(f"{where}: expected an attribute that is computed here, got {reference.set!r}{hint}")
    schema_check.set_schemas(plan, Dataset("", os.devnull))
    return steps


# --- documents --------------------------------------------------------------------------------------------------------


def read_documents(path: str, count: int, *, lines: bool, max_bytes: int) -> list[Tried]:
    """Return the first documents of a shard or a text.

    Args:
        path: a shard, told by its suffix; a text; or ``-`` for standard input, where documents are told by their form,
            as in files that only end in ``.gz``.
        count: at most so many.
        lines: True if each line of a text is a document; by default the whole text is one.
        max_bytes: a longer document is an error.

    Raises:
        ConfigError: if there is none.
    """
    if path != "-" and (is_folder(path) or not exists(path)):
        got = "a folder" if is_folder(path) else "nothing there"
        raise ConfigError(f"{path}: expected a text, a shard of documents, or - for standard input, got {got}")
    if path[len(strip_suffix(path, SHARD_SUFFIXES)) :] not in ("", ".gz"):  # a plain `.gz` may be a text, too
        if lines:
            raise ConfigError(f"{path}: expected a text with --lines, got a shard of documents")
        with Lines(path, max_bytes) as rows:
            results = list(islice(_of_rows(rows, path), count))
    else:
        results = list(islice(_of_text(path, lines=lines, max_bytes=max_bytes), count))
    if not results:
        raise ConfigError(f"{_name(path)}: expected a document, got none")
    return results


def _name(path: str) -> str:
    return STANDARD_INPUT if path == "-" else path


def _of_rows(lines: Iterator[bytes], path: str) -> Iterator[Tried]:
    rows = Rows(lines, DOCUMENT_DECODER, path)
    for row, line in rows:
        yield Tried(to_document(row, rows, line), f"{path}:{rows.number}")


def _of_text(path: str, *, lines: bool, max_bytes: int) -> Iterator[Tried]:
    name = _name(path)
    data = _read(path)
    if (path == "-" or path.endswith(".gz")) and not lines and _is_document(data.partition(b"\n")[0]):
        yield from _of_rows(iter(data.removesuffix(b"\n").split(b"\n")), name)
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"expected a text in UTF-8, got: {error}", path=name) from None
    for number, split_line in enumerate(split_lines(text) if lines else [text], 1):
        if len(split_line) > max_bytes:
            raise DataError(f"expected at most {max_bytes:,} bytes, got a longer document", path=name, line=number)
        id_ = f"{name}:{number}" if lines else name
        yield Tried(Document(split_line, id=id_, source="try"), id_)


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with Decompressed(path) as stream:
        return b"".join(iter(lambda: stream.read(1 << 20), b""))


def _is_document(line: bytes) -> bool:
    try:
        DOCUMENT_DECODER.decode(line)
    except BAD_ROW:
        return False
    return True


# --- values -----------------------------------------------------------------------------------------------------------


def values_of(steps: Sequence[Step], tried: Sequence[Tried], path: str) -> list[dict[tuple[str, str], Any]]:
    """Return each document's values as JSON, by set and key."""
    documents = [document for document, _ in tried]
    numbered = [(document, number) for number, document in enumerate(documents, 1)]
    results: list[dict[tuple[str, str], Any]] = [{} for _ in documents]
    for step, values, *_ in run_steps(Batch(documents), numbered, steps, _name(path)):
        stored = map(bytes, values.raw()) if isinstance(values, Column) else map(msgspec.json.encode, values)
        for item, value in zip(results, stored, strict=True):
            item[step.set, step.key] = msgspec.json.decode(value)
    return results


SAMPLE_BYTES = 1 << 20
SECONDS = 0.4
"""That a measurement takes, about."""


class Cost(msgspec.Struct, frozen=True):
    """Speed of a tagger, alone and in one process.

    Words and lines that it needs count.

    Attributes:
        mb_per_s: 1,000,000 bytes of UTF-8 in a second of the processor.
        ns_per_char: nanoseconds a code point.
        start_seconds: until the first values are there, if they take long: models are read, code is compiled.
        documents, bytes, chars: that were measured.
    """

    mb_per_s: float
    ns_per_char: float
    start_seconds: float
    documents: int
    bytes: int
    chars: int


def measure(steps: Sequence[Step], key: str, documents: Sequence[Document]) -> Cost:
    """Measure the tagger of a key.

    Args:
        steps: the tagger, after those that it reads, whose time is not counted.
        key: Key of the tagger.
        documents: Documents for the measurement, as many as there is time for.
    """
    begin = time.perf_counter()
    _seconds(steps, key, documents[:4])
    start = time.perf_counter() - begin
    few = documents[:16]
    share = SECONDS / max(_seconds(steps, key, few), 1e-6)
    some = documents[: max(len(few), int(share * len(few)))]
    seconds = min(_seconds(steps, key, some) for _ in range(2))
    chars, size = sum(len(d.text) for d in some), sum(len(d.text.encode()) for d in some)
    return Cost(
        mb_per_s=_rounded(size / 1e6 / max(seconds, 1e-9)),
        ns_per_char=_rounded(seconds * 1e9 / max(chars, 1)),
        start_seconds=round(start, 2),
        documents=len(some),
        bytes=size,
        chars=chars,
    )


def _rounded(number: float) -> float:
    return round(number) if number >= 100 else float(f"{number:.3g}")


def _seconds(steps: Sequence[Step], key: str, documents: Sequence[Document]) -> float:
    """Return the processor seconds for one key's values and JSON.

    Blocks are those of a worker.
    """
    total = 0.0
    for block in in_blocks(documents, lambda document: len(document.text)):
        batch = Batch([Document(d.text, id=d.id, source=d.source, metadata=d.raw_metadata, row=d.row) for d in block])
        numbered = [(document, 1_000_000) for document in batch]  # behind those whose values are checked
        begin = time.process_time()
        for step, values, *_ in run_steps(batch, numbered, steps, ""):
            if step.key == key:
                raws = values.raw() if isinstance(values, Column) else values
                for value in raws:
                    msgspec.json.encode(value)
                total += time.process_time() - begin
            begin = time.process_time()
    return total


# --- the sample -------------------------------------------------------------------------------------------------------

AROUND = ("Home | About us | Contact", "» Menu", "Read more …", "© 2024 Example Ltd. All rights reserved", "Share:", "")


def sentences() -> dict[str, str]:
    """Return some sentences, by language."""
    path = os.path.join(os.path.dirname(__file__), "tables", "sample-sentences.tsv")
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t") for line in file)


def sample_pages(size: int = SAMPLE_BYTES) -> list[Document]:
    """Return pages in several languages, the same every time.

    Nearly half of them are English.

    Args:
        size: bytes of UTF-8 at which it is enough.
    """
    chance = random.Random(1)  # noqa: S311  # nothing to keep secret
    pages: list[Document] = []
    total, texts = 0, sentences()
    while total < size:
        language = chance.choice([*["en"] * 8, *texts])
        lines = chance.choices(AROUND, k=3)
        lines += [_line(texts[language], chance) for _ in range(chance.randint(3, 30))]
        lines += [f"info{chance.randrange(10_000)}@example.org", f"https://www.example.org/{chance.randrange(10**6)}"]
        pages.append(Document("\n".join(lines), id=f"page-{len(pages)}", source="sample"))
        total += len(pages[-1].text.encode())
    return pages


def _line(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    for _ in range(len(words) // 8):  # some in other places, so that not all is a repetition
        i, j = chance.randrange(len(words)), chance.randrange(len(words))
        words[i], words[j] = words[j], words[i]
    begin = chance.randrange(len(words))
    number = f"{chance.choice(['-', '•', str(chance.randrange(2000))])} " if chance.random() < 0.2 else ""
    return number + " ".join(words[begin:] + words[: chance.randrange(begin + 1)])
