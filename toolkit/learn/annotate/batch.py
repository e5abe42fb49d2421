"""Requests of hosted batch services: files that are uploaded there, and results that are read back.

The folder of ``endpoint: batch:FOLDER`` holds both, below any sub-folders. A file of requests has the form of OpenAI's
Batch API, which other services take, too; a line each, with the digest of the sample as `custom_id`:

    requests-<set>-000001.jsonl   {"custom_id": …, "method": "POST", "url": "/v1/chat/completions", "body": {…}}
    any other name.jsonl[.gz]     {"custom_id": …, "response": {"status_code": 200, "body": {…}}, "error": null}

Results are told by their content, and may come in any order, in parts, and again. A request without a result waits; one
whose result is a failure that may pass is written again. So each run writes only requests that nobody has, and takes
only results that are new.

Source: OpenAI's API reference, "The request input object" and "The request output object" of Batch; its limits of
50,000 requests and 200 MB a file.
"""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

import msgspec
import xxhash

from toolkit.errors import DataError, amount
from toolkit.execution.executors import Report
from toolkit.learn.annotate.annotator import PATHS, WindowQuery, judge
from toolkit.learn.annotate.answers import Answer
from toolkit.learn.annotate.ledger import MILLION
from toolkit.learn.annotate.outcomes import NoReply, reply_of
from toolkit.learn.annotate.requests import AnnotationRun, ShardProgress, answers_of, body_of, is_wanted
from toolkit.storage import Stat, json_files
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join, list_files, stat
from toolkit.storage.reading import Lines
from toolkit.tag import run as tagging

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
"""Requests and bytes of a file, at most."""

_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")

_TOGETHER = 1000
"""Results that are made durable at a time."""

_LINE_BYTES = 1 << 30


class _Response(msgspec.Struct):
    status_code: int = 200
    body: msgspec.Raw = msgspec.Raw(b"{}")


class _BatchLine(msgspec.Struct):
    """A line of requests or results."""

    custom_id: str | None = None
    method: str | None = None
    response: _Response | None = None
    error: Any = None


class _ReadResults(msgspec.Struct):
    """The record of read result files, with their states."""

    files: dict[str, Stat] = {}


_LINE = msgspec.json.Decoder(_BatchLine)


class _Pending:
    """A request in a file: its bytes, and how many requests of the sample have no result."""

    __slots__ = ("count", "size")

    def __init__(self) -> None:
        self.count = self.size = 0


class BatchRun(AnnotationRun):
    """Writes the requests of some shards, and takes results. A context manager, with the face of `asking.DirectRun`.

    Memory: some 200 bytes for each request without a result.

    Args:
        work: Set; its shard is empty.
        again: True to request refused and unreadable answers again.

    Attributes:
        limits: Limits of the run, which stops when no more requests can be paid.
        numbers: Results that this run has taken.
        ledger: Ledger of the set.
        files: Files of requests that this run has written.
        written: Requests in these.
        retried: Results that are failures that may pass, so that their requests are written again.
    """

    def __init__(self, work: tagging.ShardToTag, *, again: bool) -> None:
        super().__init__(work, again=again)
        annotator = self._annotator
        self.folder = annotator.batch_folder or ""
        self._stem = f"requests-{xxhash.xxh3_64_hexdigest(annotator.name.encode())}-"
        self.files: list[str] = []
        self.written = self.retried = 0
        self._pending: dict[str, _Pending] = {}
        self._fresh: set[str] = set()
        self._committed = 0.0
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._output: Output | None = None
        self._in_file = self._numbered = 0

    def __enter__(self) -> Self:
        paths = [join(self.folder, name) for name in list_files(self.folder) if name.endswith(_SUFFIXES)]
        requests = re.compile(re.escape(self._stem) + r"([0-9]{6,})\.jsonl")
        own = {path: int(m[1]) for path in paths if (m := requests.fullmatch(os.path.basename(path)))}
        for path, number in own.items():
            self._numbered = max(self._numbered, number)
            for line, size in self._lines(path):
                if line.method is None:
                    message = "expected the requests that were written here, got a result"
                    raise DataError(f"{message}; save results under another name", path=path)
                pending = self._pending.setdefault(line.custom_id or "", _Pending())
                pending.count, pending.size = pending.count + 1, size
        record = json_files.load(self._record, _ReadResults) or _ReadResults()
        results = {path: state for path in paths if path not in own and (state := stat(path))}
        digests: set[int] = set()
        for path, state in results.items():
            self._take(path, record.files.get(path) == state, digests)
        if results and results != record.files:
            json_files.save(self._record, _ReadResults(results))
        self._pending = {key: pending for key, pending in self._pending.items() if pending.count}
        spent = self.ledger.spending.cost
        self._committed = spent + sum(self._cost(pending.size) for pending in self._pending.values())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Make the last file of requests appear; that of a run that ends by an error does not."""
        self._stack.__exit__(kind, error, trace)
        self.ledger.close()

    @property
    def _record(self) -> str:
        """Return the path of the record of read result files."""
        return join(self._work.dataset.bookkeeping, "batch", f"{next(iter(self._work.plan.sets))}.json")

    @property
    def waiting(self) -> int:
        """Return how many requests have no result."""
        return sum(pending.count for pending in self._pending.values())

    def wait(self, shard: str, report: Report) -> ShardProgress | None:
        """Return the state of a shard with all its answers; None of another one, after its requests.

        Raises:
            ToolkitError: if it cannot be read, or a file of requests cannot be written.
        """
        work, state, is_complete = msgspec.structs.replace(self._work, shard=shard), ShardProgress(is_read=True), True
        for batch, stored in tagging.selected_documents(work):
            for document, number in batch:
                queries = self._queries(document, shard, number)
                with self._lock:
                    for item in queries:
                        is_complete &= self._ask(item, state)
                state.documents += 1
            report(len(batch), stored)
        return state if is_complete else None

    def facts(self) -> list[str]:
        """Return how far it is, in words, for the progress."""
        return [f"{self.numbers.requests:,} new results", f"{self.written:,} requests written"]

    def _ask(self, query: WindowQuery, state: ShardProgress) -> bool:
        """Write the requests of a window without answer or pending request; return whether all have one."""
        is_complete = True
        for number, key in enumerate(query.keys):
            state.answered += key in self._fresh
            if key in self._pending:
                is_complete = False
            elif is_wanted(self._answers.get(key), self._annotator, again=self._again and key not in self._fresh):
                is_complete = False
                self._write(key, number, query.body)
        return is_complete

    def _write(self, key: str, number: int, body: dict[str, Any]) -> None:
        if self.limits.stopped.is_set():
            return
        seed = body.get("seed")
        whole = body_of(self._annotator, body if seed is None else {**body, "seed": seed + number}, 1)
        url = f"/v1{PATHS[self._annotator.api]}"
        line = msgspec.json.encode({"custom_id": key, "method": "POST", "url": url, "body": whole}) + b"\n"
        most, cost = self._annotator.max_cost, self._cost(len(line))
        if most is not None and self._committed + cost > most * (1 + 1e-9):
            self.limits.stop(
                f"another request may cost more than `max_cost: {most:g}` leaves: up to {cost:.4g}; with the requests "
                f"without a result the set may cost {self._committed:.4g}"
            )
            return
        if self._output is None or self._in_file == MOST_REQUESTS or self._output.size + len(line) > MOST_BYTES:
            self._stack.close()
            self._numbered, self._in_file = self._numbered + 1, 0
            self.files.append(join(self.folder, f"{self._stem}{self._numbered:06d}.jsonl"))
            self._output = self._stack.enter_context(Output(self.files[-1]))
        self._output.write(line)
        self._committed += cost
        self._in_file += 1
        self.written += 1
        request = self._pending[key] = _Pending()
        request.count, request.size = 1, len(line)

    def _cost(self, size: int) -> float:
        """Return the largest cost of a request with so many bytes."""
        return (size * self._prices[0] + self._annotator.max_tokens * self._prices[1]) / MILLION

    # --- results ------------------------------------------------------------------------------------------------------

    def _take(self, path: str, was_taken: bool, digests: set[int]) -> None:
        """Take the results of a file; those that other files have, too, count once."""
        answers: list[tuple[Answer, tuple[int, int]]] = []
        for line, _ in self._lines(path, digests):
            request = self._pending.get(line.custom_id or "")
            if line.method is not None or request is None:
                continue
            request.count = max(0, request.count - 1)
            before = self._answers.get(line.custom_id or "")
            if (was_taken and before) or (answer := self._answer(line, request, before)) is None:
                continue
            answers.append(answer)
            if len(answers) >= _TOGETHER:
                self._keep(answers)
        self._keep(answers)

    def _lines(self, path: str, digests: set[int] | None = None) -> Iterator[tuple[_BatchLine, int]]:
        with Lines(path, _LINE_BYTES) as lines:
            for number, line in enumerate(lines, 1):
                digest = xxhash.xxh3_64_intdigest(line)
                if not line.strip() or (digests is not None and digest in digests):
                    continue
                if digests is not None:
                    digests.add(digest)
                try:
                    decoded = _LINE.decode(line)
                    if decoded.method is None and decoded.response is None and decoded.error is None:
                        raise ValueError("neither `method` nor `response` nor `error`")
                    yield decoded, len(line)
                except (ValueError, RecursionError) as error:
                    message = f"expected a request or a result of a batch service, got: {error}"
                    raise DataError(message, path=path, line=number) from None

    def _answer(
        self, line: _BatchLine, request: _Pending, before: Answer | None
    ) -> tuple[Answer, tuple[int, int]] | None:
        """Return the answer of a result, and its tokens; None of a failure that may pass, and of what is not new."""
        key = line.custom_id or ""
        response = line.response
        body = bytes(response.body) if response else msgspec.json.encode({"error": line.error})
        try:
            reply = reply_of(response.status_code if response else 500, {}, body)
        except NoReply as failure:
            if failure.row.scope != "request":
                if before is None:
                    self.retried += 1
                    self._count("error_server", failure.message)
                return None
            if before and judge(before, self._annotator)[0] == "success":
                return None
            answer = Answer(key=key, at=int(time.time()), status=failure.row.status, error=failure.message)
            tokens = 0, 0
        else:
            usual = (request.size, self._annotator.max_tokens)
            counts = reply.prompt_tokens, reply.completion_tokens
            tokens = usual[0] if counts[0] is None else counts[0], usual[1] if counts[1] is None else counts[1]
            answer = answers_of(WindowQuery((0, 0), {}, [key]), [0], reply, tokens)[0][0]
            created = msgspec.json.decode(body).get("created")
            if isinstance(created, int) and 0 < created < 1 << 40:
                answer = msgspec.structs.replace(answer, at=created)
                if before and before.status == "success" and created < before.at:
                    return None
        if before and msgspec.structs.replace(before, at=answer.at, seconds=0.0) == answer:
            return None
        return answer, tokens

    def _keep(self, answers: list[tuple[Answer, tuple[int, int]]]) -> None:
        """Make answers durable, their cost first; the list is empty then."""
        if not answers:
            return
        self.ledger.add(len(answers), sum(tokens[0] for _, tokens in answers), sum(tokens[1] for _, tokens in answers))
        self._answers.add_all([answer for answer, _ in answers])
        for answer, tokens in answers:
            self._fresh.add(answer.key)
            self.numbers.requests += 1
            self.numbers.prompt_tokens += tokens[0]
            self.numbers.completion_tokens += tokens[1]
            status, parsed = judge(answer, self._annotator)
            if status != "success":
                self._count(status, parsed.error)
        answers.clear()

    def _count(self, status: str, message: str) -> None:
        self.numbers.failed[status] += 1
        self.numbers.first.setdefault(status, message)


def waits(batch: BatchRun) -> str:
    """Return the pending requests of a batch and the next step; empty without pending requests."""
    if not batch.waiting:
        return ""
    text = f"{amount(batch.waiting, 'request')} without a result in {batch.folder}, {batch.written:,} written now"
    if batch.files:
        text += ":\n" + "\n".join(f"  {path}" for path in batch.files) + "\nsubmit these files to the batch service"
    return f"{text}; when its results are in that folder, run the same command again"
