"""Trace tokens, texts, ids or URLs to documents, and documents to tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Flag, Options as CommonOptions, Words, absent, positive
from toolkit.commands import (
    _mix_preparation as preparation,
    _mix_previews as previews,
    _sections as sections,
    _tracing as tracing,
)
from toolkit.config import settings
from toolkit.errors import ConfigError, amount, short
from toolkit.execution.executors import Report, Task
from toolkit.mix import publication
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import JoinedShard, joint_rows
from toolkit.mix.rule_effects import explain as explaining
from toolkit.mix.settings import REJECTED, TOKENS
from toolkit.records.left_out import LeftOut, is_called
from toolkit.stages.context import Context, Outcome, all_values
from toolkit.storage.addresses import reveal_url
from toolkit.storage.paths import join
from toolkit.text.tokens import TraceFile
from toolkit.text.tokens.orders import FileOfTokens, Order
from toolkit.text.tokens.trace import Piece

MOST = 1000
"""Places of a text that are found in a shard."""

EXPLAINED = 100
"""Documents that are read again and explained."""

Row = tuple[str, int]
"""A row of a shard, from 1."""


class TracedTokens(msgspec.Struct, kw_only=True):
    """Consecutive tokens of one document in a file.

    Attributes:
        source, id: Document; null where no file has the ids, and no configuration is given.
        shard: Relative path of its shard, after ``STREAM/`` where streams have names.
        row: Row in the shard, from 1.
        copy: Number of the document's copy, from 1.
        span: Stretch of the document's text that the tokens stand for: start and end, in code points.
        tokens: First token in the file, from 0, and the one after the last.
        file: File of the tokens.
        edits: Stretches inside the span that rules have replaced: start, end, and code points that were written.
        rank, sample: Reader of the tokens in a training step, and number of its sample.
    """

    source: str | None
    id: str | None
    shard: str
    row: int
    copy: int
    span: tuple[int, int]
    tokens: tuple[int, int]
    file: str
    edits: list[tuple[int, int, int]] = absent()
    rank: int = absent()
    sample: int = absent()


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A place of a text in a document; fields as of `TracedTokens`."""

    source: str
    id: str
    shard: str
    row: int
    span: tuple[int, int]


class Trace(CommandResult, kw_only=True):
    """The result of `trace`.

    Attributes:
        pieces: Tokens in the order of their files; of a step in that of reading.
        matches: Places of the text.
        documents: Documents, with their input, attributes, rules, edits and parts; they need a configuration.
        left_out: Items with that id or URL that ingest has left out, and why.
    """

    pieces: list[TracedTokens]
    matches: list[Match] = absent()
    documents: list[dict[str, Any]] = absent()
    left_out: list[LeftOut] = absent()


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit trace``.

    Attributes:
        config: the configuration (YAML)
        overrides: settings that override the file's
        tokens: these tokens of a file that `tokenize` wrote, counted from 0
        text: documents with exactly this text, and its tokens (needs -c)
        id: the document with this id or URL, and its tokens (needs -c)
        step: tokens that a training program reads in this step, from 1
        of: YAML that says how the program reads, with --step
    """

    EXAMPLES: ClassVar = ("toolkit trace --tokens data/tokens/tokens.pbin:1000-1100",)

    config: Annotated[str | None, Flag("-c", "--config", metavar="FILE")] = None
    overrides: Annotated[tuple[str, ...], Words("KEY=VALUE")] = ()
    tokens: Annotated[str | None, Flag(metavar="FILE:A-B")] = None
    text: Annotated[str | None, Flag()] = None
    id: Annotated[str | None, Flag(metavar="ID|URL", parse=reveal_url)] = None
    step: Annotated[int | None, Flag(parse=positive, metavar="N")] = None
    of: Annotated[str | None, Flag(metavar="CONFIG")] = None

    def __post_init__(self) -> None:
        names = [name for name in ("tokens", "text", "id", "step") if getattr(self, name) is not None]
        if len(names) != 1:
            raise ConfigError(f"expected one of --tokens, --text, --id and --step, got {' and '.join(names) or 'none'}")
        if (self.step is None) != (self.of is None):
            raise ConfigError("expected --step N together with --of CONFIG")
        if names[0] in ("text", "id") and self.config is None:
            raise ConfigError(f"expected a configuration (-c FILE) with --{names[0]}")
        if self.text == "":
            raise ConfigError("expected a text of at least one character with --text, got none")

    @property
    def only_shows(self) -> bool:
        return True


def run(context: Context, options: Options) -> Outcome:
    """Trace the requested tokens or documents."""
    if options.tokens is not None or options.step is not None:
        pieces = list(_of_tokens(options.tokens) if options.tokens else _of_step(options.step or 0, options.of or ""))
        if options.config is None:
            return _outcome(Trace(pieces=pieces))
        corpus = _Corpus(context)
        rows = {(piece.shard, piece.row): None for piece in pieces}
        documents = corpus.explained(list(rows)[:EXPLAINED])
        names = {(document["shard"], document["row"]): (document["source"], document["id"]) for document in documents}
        for piece in pieces:
            if piece.id is None and (piece.shard, piece.row) in names:
                piece.source, piece.id = names[piece.shard, piece.row]
        return _outcome(Trace(pieces=pieces, documents=documents))
    corpus = _Corpus(context)
    tasks = [Task(work.name, work, key=work.key) for work in corpus.works.values()]
    finding = partial(find_documents, options.text, options.id)
    matches = [match for value in all_values(context.run("explain", finding, tasks)) for match in value]
    spans: dict[Row, list[tuple[int, int]]] = {}
    for match in matches:
        spans.setdefault((match.shard, match.row), []).append(match.span)
    if options.id is None:
        documents = corpus.explained(list(spans)[:EXPLAINED])
        return _outcome(Trace(pieces=list(tokens_of(context, spans)), matches=matches, documents=documents))
    datasets = {work.dataset.bookkeeping: work.dataset for work in corpus.works.values()}
    items = tracing.items_left_out(datasets.values(), options.id, amount(len(tasks), "shard"), is_found=bool(matches))
    documents = corpus.explained(list(spans))
    keys = [(document["source"], document["id"]) for document in documents]
    places = tracing.in_output(context, keys) or {}
    documents = [
        document | ({"output": places[key]} if key in places else {})
        for key, document in zip(keys, documents, strict=True)
    ]
    pieces = list(tokens_of(context, dict.fromkeys(spans, (None,))))
    return _outcome(Trace(pieces=pieces, documents=documents, left_out=items))


# --- from tokens ------------------------------------------------------------------------------------------------------


def _of_tokens(tokens: str) -> Iterator[TracedTokens]:
    path, _, numbers = tokens.rpartition(":")
    first, _, end = numbers.partition("-")
    if not (path and first.isdecimal() and end.isdecimal() and int(first) < int(end)):
        raise ConfigError(f"--tokens: expected FILE:A-B with A below B, such as tokens.pbin:0-100, got {tokens}")
    trace = TraceFile(path)
    if int(end) > trace.tokens:
        raise ConfigError(f"--tokens: expected tokens of {path} from 0 to {trace.tokens:,}, got {numbers}")
    return _traced(trace, int(first), int(end))


def _of_step(step: int, config: str) -> Iterator[TracedTokens]:
    """Yield a training step's tokens, by rank and in reading order."""
    node = settings.parse(config, "--of") if config.startswith("{") else settings.load_source(config, [])
    settings.refuse_unknown(node, Order, (), "an order")
    order = settings.convert(node, Order)
    traces = [TraceFile(path) for path in order.files]
    for read in order.step(step, [FileOfTokens(trace.tokens, trace.lengths) for trace in traces]):
        for piece in _traced(traces[read.file], read.first, read.end):
            yield msgspec.structs.replace(piece, rank=read.rank, sample=read.sample)


def _traced(trace: TraceFile, first: int, end: int) -> Iterator[TracedTokens]:
    for piece in trace.pieces(first, end):
        yield _one(trace, piece, max(first, piece.first), min(end, piece.end))


def _one(trace: TraceFile, piece: Piece, first: int, end: int) -> TracedTokens:
    start, behind, edits = trace.span(piece, first, end)
    origin = piece.origin
    return TracedTokens(
        source=origin.source if trace.has_ids else None,
        id=origin.id if trace.has_ids else None,
        shard=origin.shard,
        row=origin.row,
        copy=origin.copy,
        span=(start, behind),
        tokens=(first, end),
        file=trace.path,
        edits=edits or msgspec.UNSET,  # type: ignore[arg-type]  # see `absent`
    )


# --- from documents ---------------------------------------------------------------------------------------------------


def find_documents(text: str | None, id: str | None, work: JoinedShard, report: Report) -> list[Match]:
    """Return a shard's places of a text, or documents with an id."""
    result: list[Match] = []
    work = msgspec.structs.replace(work, sets=[] if work.stream.text is None else work.sets)
    for document, number, _, _ in joint_rows(work, set()):
        report(1, 0)
        if text is not None:
            spans = list(_places(document.text, text))
        else:
            spans = [(0, document.chars)] if is_called(document.row, document.id, id or "") else []
        names: Any = {"source": document.source, "id": document.id, "shard": work.key, "row": number}
        result += [Match(**names, span=span) for span in spans]
        if len(result) >= MOST:
            break
    return result[:MOST]


def _places(text: str, part: str) -> Iterator[tuple[int, int]]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + 1)


class _Corpus:
    """The documents of a configuration, as its mix has them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._of_mix: dict[str, ShardToMix] = {}
        if of_mix := next(iter(sections.mixes(context).values()), None):
            prepared = preparation.prepare(of_mix, preparation.settings_of(of_mix, writes=False))
            prepared = preparation.fill_budget(of_mix, prepared)
            context.warn(prepared.unreadable.values())
            self._of_mix = {work.key: work for work in prepared.works}
            self.works: Mapping[str, JoinedShard] = self._of_mix
        else:
            limit, shards = context.config.max_document_bytes, context.shards(context.dataset)[0]
            self.works = {shard: JoinedShard.of(context.dataset, [], shard, limit) for shard in shards}

    def explained(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the facts about documents: input, attributes, and rules and edits of a mix."""
        works, by_shard = self.works, dict[str, list[int]]()
        for shard, row in rows:
            by_shard.setdefault(shard, []).append(row)
        if unknown := next((shard for shard in by_shard if shard not in works), None):
            raise ConfigError(f"expected documents of the configuration, got tokens of {unknown}; give the one of them")
        result: dict[Row, dict[str, Any]] = {}
        if self._of_mix:
            targets = {shard: explaining.ExplainTarget(self._of_mix[shard], rows=by_shard[shard]) for shard in by_shard}
            tasks = [Task(works[shard].name, target, key=shard) for shard, target in targets.items()]
            results = all_values(self._context.run("explain", explaining.explain_shard, tasks))
            for shard, item in ((shard, item) for shard, some in zip(by_shard, results, strict=True) for item in some):
                row = int(item.place.rpartition(":")[2])
                result[shard, row] = previews.without(msgspec.to_builtins(item), "rank", "way", "deciding")
        else:
            for shard, numbers in by_shard.items():
                source = self._context.source_of(works[shard].dataset, [shard])
                for document, _, raw, number in source.raw_rows(shard, self._context.config.max_document_bytes):
                    if number in numbers:
                        attributes = {name: msgspec.json.decode(item) for name, item in raw.items()}
                        result[shard, number] = {"id": document.id, "source": document.source, "attributes": attributes}
        return [
            {"shard": shard, "row": row, **result[shard, row]}
            | tracing.origin(works[shard].dataset, works[shard].shard, row)
            for shard, row in rows
            if (shard, row) in result
        ]


def tokens_of(context: Context, spans: Mapping[Row, Sequence[tuple[int, int] | None]]) -> Iterator[TracedTokens]:
    """Yield the tokens of stretches of documents (None: all of it) in all outputs of a configuration."""
    for trace in _traces(context):
        for piece in trace.rows(spans):
            for span in spans[piece.origin.shard, piece.origin.row]:
                first, end = (piece.first, piece.end) if span is None else _within(trace, piece, *span)
                if first < end:
                    yield _one(trace, piece, first, end)


def _traces(context: Context) -> Iterator[TraceFile]:
    for output in sections.mixes(context).values():
        section = output.config.mix.get("output", {})
        manifest = publication.load_manifest(section["path"]) if section.get("format") == TOKENS else None
        for part in manifest.parts if manifest else ():
            if part.label != REJECTED:
                yield TraceFile(join(section["path"], part.path))


def _within(trace: TraceFile, piece: Piece, start: int, end: int) -> tuple[int, int]:
    """Return a piece's tokens for a stretch of its text (code points)."""
    tokens = range(piece.first, piece.end)
    first = bisect_right(tokens, start, key=lambda token: trace.span(piece, token, token + 1)[1])
    behind = bisect_left(tokens, end, key=lambda token: trace.span(piece, token, token + 1)[0])
    return piece.first + first, piece.first + behind


# --- for people -------------------------------------------------------------------------------------------------------


def _outcome(trace: Trace) -> Outcome:
    lines = list(map(_line, trace.pieces))
    if "matches" in trace.data:
        places = [
            f"{match.shard}:{match.row}  {match.span[0]}-{match.span[1]}  {short(match.id)}" for match in trace.matches
        ]
        lines = [f"{amount(len(places), 'place')} in documents", *places, "", *lines]
    for document in trace.documents or ():
        place = f"{document['shard']}:{document['row']}"
        lines += ["", f"{place}  id {short(document['id'])}, source {short(document['source'])}"]
        lines += tracing.show_origin(document)
        if "steps" in document:
            dropped = document["dropped"]
            fate = explaining.show_kept(emptied=document["emptied"])
            lines.append(f"  dropped by {dropped!r}" if dropped else fate)
            lines += [f"    {step['rule']}  {step['verdict']}" for step in document["steps"]]
        lines += [f"    {name} = {short(value, 200)}" for name, value in document.get("attributes", {}).items()]
    if trace.left_out:
        lines += ["", tracing.show_left_out(trace.left_out)]
    return Outcome(text="\n".join(lines) or "these tokens are of no document: they fill a sequence", data=trace)


def _line(piece: TracedTokens) -> str:
    who = f"rank {piece.rank}, sample {piece.sample:,}: " if isinstance(piece.rank, int) else ""
    name = "" if piece.id is None else f"  {short(piece.id)}, source {short(piece.source)}"
    copy = f" copy {piece.copy}" if piece.copy > 1 else ""
    tokens, span = (f"{a:,}-{b:,}" for a, b in (piece.tokens, piece.span))
    return f"{who}{piece.file}:{tokens}  {piece.shard}:{piece.row}{copy}, characters {span}{name}"
