"""Asking: the documents of some shards go to a model, many at a time; their answers become durable one by one.

    documents ──a thread──> requests without an answer ──queue──> threads ──> Endpoint ──> Answers

Shards are read in their order, a few requests ahead. A shard is complete when each of its samples has an answer, or is
known to have none; `wait` then returns, and its attributes can be written. Limits are those of the whole run, so all
of that is in one process. `estimate` says beforehand how many samples, tokens and requests there are.

An OpenAI-compatible server: requests with retries, and replies; `outcomes` says what a reply is.
"""

import os
import random
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from queue import Empty, Full, Queue
from threading import Condition
from typing import Any, Self

import msgspec
from xxhash import xxh3_64_hexdigest

from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.errors import ConfigError, DataError, ToolkitError, amount, duration
from toolkit.execution.executors import Report
from toolkit.interrupts import AWAKE, check
from toolkit.learn.annotate import annotator as annotators
from toolkit.learn.annotate.annotator import KEY, PATHS, Annotator, WindowQuery, answers_folder, check_address, judge
from toolkit.learn.annotate.answers import Answer
from toolkit.learn.annotate.ledger import Ledger, RateLimiter
from toolkit.learn.annotate.outcomes import CAUSES, MESSAGE, NoReply, Reply, reply_of
from toolkit.session import current
from toolkit.storage.addresses import redact_text
from toolkit.storage.paths import join
from toolkit.storage.retrying import bound_headers
from toolkit.storage.threads import Thread
from toolkit.tag import run as tagging
from toolkit.tag.plan import build
from toolkit.text.tokens import load_tokenizer

CONNECT_SECONDS = 20.0
_ERROR_BYTES = 1 << 16
"""Bytes of the body of an error that are read."""

_REPLY_BYTES, _TOKEN_BYTES = 1 << 20, 1 << 13
"""Bytes of a reply, at most: of itself, and for each token that it may have (with log probabilities, in `sampling`)."""


class Interrupted(Exception):
    """A request was given up because the run stops; it may be asked again."""


class Endpoint:
    """Asks a server; threads may share it.

    Args:
        of: Annotator with the requests and the address.
        limits: Limits of the run; told of seconds in which the server wants no request.
        ledger: Ledger of the set, which notes each attempt.

    Attributes:
        retried: requests that were made again.
        trouble: why the last request has failed; empty once one has an answer.
        has_answered: True if a request had a reply.

    Raises:
        ConfigError: for an address that is none, or a key that is not in the environment.
    """

    def __init__(self, of: Annotator, limits: RateLimiter, ledger: Ledger) -> None:
        self._of, self._limits, self._ledger = of, limits, ledger
        self._url = check_address(of.endpoint) + PATHS[of.api]
        self._headers = {"Content-Type": "application/json", **authorization(of.api_key_env)}
        self._pool = _pool(self._url, of.concurrency)
        self._give_up = of.give_up or current().options.give_up
        self.has_answered = False
        self.retried = 0
        self.trouble = ""

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def ask(self, body: Mapping[str, Any], samples: int, tokens: int) -> Reply:
        """Return the reply to a request for some samples. The prompt has about so many tokens.

        Raises:
            Failure: if it finally fails.
            Interrupted: if the run stops.
        """
        data = msgspec.json.encode(body_of(self._of, body, samples))
        answer = self._of.max_tokens * samples
        for attempt in count():
            if not self._limits.turn(tokens) or (key := self._ledger.begin(len(data), answer)) is None:
                raise Interrupted
            try:
                reply = self._ask(data, answer)
            except NoReply as failure:
                self._ledger.end(key, 0, 0) if failure.is_free else self._ledger.lose(key)
                self._check_wait(failure)
                if failure.row.scope != "transient":
                    raise
                if attempt == self._of.retries:
                    failure.message += f" ({attempt + 1} times)" if attempt else ""
                    if failure.row.unproven and not self.has_answered:
                        failure.message += f"; is there a server at {redact_text(self._of.endpoint)}?"
                    raise
                pause = min(self._of.backoff * 2 ** min(attempt, 30), self._give_up)
                self.trouble = failure.message
                wait = pause * random.uniform(0.75, 1.25)  # noqa: S311  # no secret
                if failure.wait is not None:
                    wait = max(failure.wait, 0.0)
                    self._limits.slow_down(wait)
            except BaseException:
                self._ledger.lose(key)
                raise
            else:
                self._ledger.end(key, reply.prompt_tokens, reply.completion_tokens)
                self._limits.add_answer(reply.completion_tokens or 0)
                self.has_answered, self.trouble = True, ""
                return reply
            self.retried += 1
            if not self._limits.pause(wait):
                raise Interrupted
        raise AssertionError

    def _check_wait(self, failure: NoReply) -> None:
        """Raise Failure if the server asks for too long a wait."""
        if failure.row.scope == "transient" and failure.wait is not None and failure.wait > self._give_up:
            wait = duration(min(failure.wait, 1e9))
            raise NoReply(
                "wait",
                f"{failure.message}; the server asks to wait for {wait}, longer than `give_up` "
                f"({duration(self._give_up)})",
            )

    def _ask(self, data: bytes, tokens: int) -> Reply:
        import urllib3

        begin = time.monotonic()
        try:
            response = self._pool.urlopen(
                "POST",
                self._url,
                body=data,
                headers=self._headers,
                retries=False,
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, self._of.timeout), read=self._of.timeout),
            )
            try:
                body = self._read(response, begin, tokens)
            finally:
                response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            away = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
            is_away = isinstance(error, (*away, urllib3.exceptions.ProxyError))
            raise NoReply("connection" if is_away else "reply", _connection_message(error), is_free=is_away) from None
        return reply_of(response.status, response.headers, body, time.monotonic() - begin)

    def _read(self, response: Any, begin: float, tokens: int) -> bytes:
        """Return the body; who sends it drop by drop, or without end, is given up, too."""
        is_reply = 200 <= response.status < 300
        most, body = (_REPLY_BYTES + _TOKEN_BYTES * tokens if is_reply else _ERROR_BYTES), b""
        while block := response.read1(1 << 16):
            body += block
            if len(body) > most:
                response.close()
                if not is_reply:
                    break
                raise NoReply("size", f"expected a reply of at most {most:,} bytes, got more")
            if time.monotonic() - begin > self._of.timeout:
                response.close()
                raise NoReply("reply", f"expected a whole reply within {self._of.timeout:g} s, got a part")
        return body


def body_of(annotator: Annotator, body: Mapping[str, Any], samples: int) -> dict[str, Any]:
    """Return the body of a request for some samples."""
    results = {name: value for name, value in body.items() if name != "schema"}
    if samples > 1:
        results["n"] = samples
    if "schema" in body and annotator.json == "schema":
        named = {"name": "answer", "schema": body["schema"], "strict": True}
        results["response_format"] = {"type": "json_schema", "json_schema": named}
    elif "schema" in body and annotator.json == "object":
        results["response_format"] = {"type": "json_object"}
    return results


def authorization(variable: str | None) -> dict[str, str]:
    """Return the header with the key of a server.

    Raises:
        ConfigError: if the variable has none.
    """
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"{KEY}: expected the key of the server in the variable {variable}, got none")
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"{KEY}: expected a key of printable ASCII characters in {variable}, got others")
    return {"Authorization": f"Bearer {key}"}


def _pool(url: str, connections: int) -> Any:
    """Return the connection pool for a URL, through the environment's proxy."""
    import urllib3

    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    options: dict[str, Any] = {"maxsize": connections, "block": False}
    if scheme == "https":
        import certifi

        options["ca_certs"] = os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE") or certifi.where()
    proxy = urllib.request.getproxies().get(scheme)
    if proxy and urllib.request.proxy_bypass(host):
        proxy = None
    pools = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)
    bound_headers(pools)
    return pools


def _connection_message(error: Exception) -> str:
    """Return the message of a connection error, without objects and addresses."""
    text = str(error).rpartition("): ")[2] or str(error)
    return redact_text(f"expected a reply, got: {text}")[:MESSAGE]


CHARS_PER_TOKEN = 4
"""Of a prompt, where no tokenizer counts them."""


def is_wanted(answer: Answer | None, annotator: Annotator, *, again: bool) -> bool:
    """Return True if a sample must be requested: it has no answer, or one that is asked for `again`."""
    if answer is None or answer.status == "error_server":
        return True
    return again and judge(answer, annotator)[0] != "success"


def annotator_of(work: tagging.ShardToTag) -> Annotator:
    """Return the annotator of a plan: its only tagger."""
    (step,) = build(work.plan)
    assert isinstance(step.tagger, Annotator)
    return step.tagger


def ledger_folder(dataset: Dataset, name: str, annotator: Annotator) -> str:
    """Return the folder of the ledger of a set: beside its answers, on the same disk."""
    if annotator.answers == answers_folder(dataset):
        return join(dataset.bookkeeping, "ledger", name)
    return join(annotator.answers, "ledger", f"{name}-{xxh3_64_hexdigest(dataset.attributes.encode())}")


class TokenCounter:
    """Counts the tokens of a request: with the tokenizer of a set, else about one for four characters."""

    def __init__(self, annotator: Annotator) -> None:
        self._tokenizer = load_tokenizer(annotator.tokenizer) if annotator.tokenizer else None

    def __call__(self, body: dict[str, Any]) -> int:
        texts = [message["content"] for message in body["messages"]] if "messages" in body else [body["prompt"]]
        if self._tokenizer is None:
            return sum(map(len, texts)) // CHARS_PER_TOKEN + 1
        return sum(len(self._tokenizer.encode(text).ids) for text in texts)


class RequestEstimate(msgspec.Struct):
    """The pending requests; one that several documents share counts for each.

    Attributes:
        documents: Documents of which the model is asked.
        samples: Samples of them.
        pending: samples without an answer.
        requests: Number of requests for pending samples.
        prompt_tokens: Prompt tokens of the requests, about.
        completion_tokens: Completion tokens of the answers, at most.
    """

    documents: int = 0
    samples: int = 0
    pending: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


def estimate(work: tagging.ShardToTag, shard: str, estimate: RequestEstimate, *, again: bool) -> None:
    """Add the pending requests of a shard to an estimate; nothing is asked.

    Raises:
        ToolkitError: if it cannot be read.
    """
    annotator = annotator_of(work)
    answers = annotators.opened(annotator.answers, annotator.name)
    count = TokenCounter(annotator)
    for batch, _ in tagging.selected_documents(msgspec.structs.replace(work, shard=shard)):
        estimate.documents += len(batch)
        for query in (item for document, _ in batch for item in annotator.queries(document)):
            samples = sum(is_wanted(answers.get(key), annotator, again=again) for key in query.keys)
            requests = min(samples, 1) if annotator.one_request else samples
            estimate.samples += len(query.keys)
            estimate.pending += samples
            estimate.requests += requests
            estimate.prompt_tokens += requests * count(query.body) if requests else 0
            estimate.completion_tokens += samples * annotator.max_tokens


class ShardProgress(msgspec.Struct):
    """How far a shard is.

    Attributes:
        documents: Documents whose samples are all settled.
        stored: bytes of the shard, as stored, that these were read from.
        pending: documents whose samples are not settled yet.
        is_read: True if all documents are known.
        answered: samples that were asked for and have been settled in this run.
        fault: Error of reading it.
    """

    documents: int = 0
    stored: int = 0
    pending: int = 0
    is_read: bool = False
    answered: int = 0
    fault: ToolkitError | None = None

    @property
    def is_complete(self) -> bool:
        return self.fault is not None or (self.is_read and not self.pending)


class _Waiting(msgspec.Struct):
    """A document, its pending samples, and its part of the shard's bytes."""

    state: ShardProgress
    stored: int
    pending: int = 0


class _Request(msgspec.Struct, frozen=True):
    """Samples of a window in one request.

    Attributes:
        query: Query about the window.
        numbers: Numbers of the samples.
        tokens: Tokens of the prompt, about.
    """

    query: WindowQuery
    numbers: list[int]
    tokens: int


class Numbers(msgspec.Struct):
    """The requests and answers of a run.

    Attributes:
        requests: Requests that were answered, or have finally failed.
        prompt_tokens, completion_tokens: of answers.
        failed: samples by status.
        first: a message for each status.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    first: dict[str, str] = {}


class AnnotationRun:
    """Base of a run over the requests of a set.

    Args:
        work: Set; its shard is empty.
        again: True to request refused and unreadable answers again.
        most: Cost of all runs of the set, at most; None without a bound.

    Attributes:
        limits: Limits of the run.
        numbers: Requests and answers so far.
        ledger: Ledger of the set.
    """

    def __init__(self, work: tagging.ShardToTag, *, again: bool, most: float | None = None) -> None:
        self._work, self._again = work, again
        self._annotator = annotator = annotator_of(work)
        self._answers = annotators.opened(annotator.answers, annotator.name)
        self.limits, self.numbers = RateLimiter(annotator.requests_per_minute, annotator.tokens_per_minute), Numbers()
        prices = annotator.prices
        self._prices = (prices.input, prices.output) if prices else (0.0, 0.0)
        folder = ledger_folder(work.dataset, next(iter(work.plan.sets)), annotator)
        self.ledger = Ledger(folder, self.limits, self._prices, most)

    def _queries(self, document: Document, shard: str, number: int) -> list[WindowQuery]:
        """Return the queries about a document, by its shard and row."""
        try:
            return self._annotator.queries(document)
        except ToolkitError as error:
            path = self._work.dataset.shard_path(shard)
            raise DataError(str(error), path=path, line=number, id=document.id) from None


class DirectRun(AnnotationRun):
    """Requests the missing answers of some shards. A context manager, which begins it and ends its threads.

    Args:
        work: the set; its shard is empty.
        shards: Shards, in order.
        again: True to request refused and unreadable answers again.
        expected: requests that are to be made, about.
    """

    def __init__(self, work: tagging.ShardToTag, shards: Sequence[str], *, again: bool, expected: int) -> None:
        super().__init__(work, again=again, most=annotator_of(work).max_cost)
        self._shards, self._expected, annotator = shards, expected, self._annotator
        self._endpoint = Endpoint(annotator, self.limits, self.ledger)
        self._count = TokenCounter(annotator)
        self._states = {shard: ShardProgress() for shard in shards}
        self._settled = Condition()
        self._flying: dict[str, list[_Waiting]] = {}
        """Of each sample that is asked for, the documents that wait for it."""
        self._asked_again: set[str] = set()
        """Samples that were asked again in this run."""
        self._failures: list[tuple[str, list[Answer]]] = []
        """Requests that have failed since the last answer: what they have in common, and the samples.

        They are held back: an answer shows that the cause is in the requests, many in a row that it is in the endpoint.
        """
        self._all_read = False
        self._begin = time.monotonic()
        self._fault: BaseException | None = None
        self._queue: Queue[_Request] = Queue(2 * annotator.concurrency)
        self._threads = [Thread(target=self._serve, name=f"ask-{i}", daemon=True) for i in range(annotator.concurrency)]
        self._threads.append(Thread(target=self._guarded, args=(self._read,), name="read", daemon=True))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop; wait for answers that are under way, unless the command is interrupted."""
        self.limits.stop()
        for thread in self._threads if kind is None or issubclass(kind, Exception) else ():
            thread.join()
        self.ledger.close()
        self._endpoint.close()

    def wait(self, shard: str, report: Report) -> ShardProgress | None:
        """Return the state of a complete shard; None if the run has stopped before.

        Raises:
            ToolkitError: if it cannot be read, or an answer cannot be written.
        """
        state = self._states[shard]
        documents = stored = 0
        while True:
            check()
            with self._settled:
                if not (is_over := state.is_complete or self._is_over()):
                    self._settled.wait(AWAKE)
                now = state.documents, state.stored
            if now != (documents, stored):
                report(now[0] - documents, now[1] - stored)
                documents, stored = now
            if is_over:
                break
        if self._fault:
            raise self._fault
        if state.fault:
            raise state.fault
        return state if state.is_complete else None

    def facts(self) -> list[str]:
        """Return progress and speed in words."""
        numbers, expected = self.numbers, self._expected
        seconds = max(time.monotonic() - self._begin, 1e-9)
        tokens = (numbers.prompt_tokens + numbers.completion_tokens) / seconds
        results = [f"{numbers.requests:,} of {max(expected, numbers.requests):,} requests"]
        results += [f"{numbers.requests / seconds:.1f}/s", f"{tokens:,.0f} tokens/s"]
        if self._annotator.prices:
            results.append(f"cost {self.ledger.cost:.4g}")
        if failed := sum(numbers.failed.values()):
            results.append(f"{failed:,} samples failed")
        if trouble := self._endpoint.trouble:
            results.append(f"asking again after: {trouble}")
        if 0 < numbers.requests < expected:
            results.append(f"about {duration(seconds * (expected / numbers.requests - 1))} left")
        return results

    @property
    def retried(self) -> int:
        """Return how many requests were made again."""
        return self._endpoint.retried

    def _is_over(self) -> bool:
        """Return True if nothing more will be settled."""
        if self._fault is not None:
            return True
        return self.limits.stopped.is_set() and not (
            self._flying and any(thread.is_alive() for thread in self._threads)
        )

    # --- threads ------------------------------------------------------------------------------------------------------

    def _guarded(self, function: Any) -> None:
        """Call a function; its error ends the run, in the main thread."""
        try:
            function()
        except BaseException as error:
            with self._settled:
                self._fault = self._fault or error
                self._settled.notify_all()
            self.limits.stop()

    def _read(self) -> None:
        for shard in self._shards:
            state = self._states[shard]
            try:
                self._read_shard(msgspec.structs.replace(self._work, shard=shard), state)
            except ToolkitError as error:
                state.fault = error
            with self._settled:
                state.is_read = True
                self._settled.notify_all()
            if self.limits.stopped.is_set():
                return
        with self._settled:
            self._all_read = True
            self._conclude()

    def _read_shard(self, work: tagging.ShardToTag, state: ShardProgress) -> None:
        for batch, stored in tagging.selected_documents(work):
            if not batch:
                state.stored += stored
            for document, number in batch:
                queries = self._queries(document, work.shard, number)
                waiting = _Waiting(state, stored // len(batch), 1)  # until all its samples are known
                state.pending += 1
                for item in queries:
                    if not self._send(item, waiting):
                        return
                with self._settled:
                    self._settle(waiting)

    def _send(self, query: WindowQuery, waiting: _Waiting) -> bool:
        """Queue the samples without an answer; return False if the run stops."""
        with self._settled:
            todo = []
            for number, key in enumerate(query.keys):
                if key in self._flying:
                    self._flying[key].append(waiting)
                elif key not in self._asked_again and is_wanted(
                    self._answers.get(key), self._annotator, again=self._again
                ):
                    self._flying[key] = [waiting]
                    todo.append(number)
                else:
                    continue
                waiting.pending += 1
        tokens = self._count(query.body) if todo else 0
        groups = [todo] if self._annotator.one_request and todo else [[number] for number in todo]
        for i, numbers in enumerate(groups):
            if not self._put(_Request(query, numbers, tokens)):
                for group in groups[i:]:
                    self._drop(_Request(query, group, tokens))
                return False
        return not self.limits.stopped.is_set()

    def _put(self, request: _Request) -> bool:
        while not self.limits.stopped.is_set():
            try:
                self._queue.put(request, timeout=AWAKE)
            except Full:
                continue
            return True
        return False

    def _serve(self) -> None:
        while True:
            try:
                request = self._queue.get(timeout=AWAKE)
            except Empty:
                if self.limits.stopped.is_set():
                    return
                continue
            self._guarded(lambda request=request: self._ask(request))

    def _ask(self, request: _Request) -> None:
        numbers, body = request.numbers, request.query.body
        try:
            while numbers:
                seed = body.get("seed")
                whole = body if seed is None else {**body, "seed": seed + numbers[0]}
                reply = self._endpoint.ask(whole, len(numbers), request.tokens)
                answered, numbers = numbers[: len(reply.choices)], numbers[len(reply.choices) :]
                self._take(*answers_of(request.query, answered, reply, _used(reply, request.tokens)))
        except NoReply as failure:
            row = failure.row
            if row.scope == "endpoint" or (failure.cause == "connection" and not self._endpoint.has_answered):
                self.limits.stop(failure.message)
                self._drop(request, numbers)
                return
            now, keys = int(time.time()), (request.query.keys[number] for number in numbers)
            self._take(
                [Answer(key=key, at=now, status=row.status, error=failure.message) for key in keys], failure.kind
            )
        except Interrupted:
            self._drop(request, numbers)

    def _take(self, answers: list[Answer], failure: str = "") -> None:
        """Keep the answers of a request; delay those of a failed one.

        Args:
            answers: Answers of its samples.
            failure: Kind of the failure, common to several requests; empty if the request has a text.
        """
        with self._settled:
            self.numbers.requests += 1
            self._failures.append((failure, answers))
            breaker = self._annotator.breaker
            kinds = Counter(kind for kind, _ in self._failures)
            if failure and self.limits.stopped.is_set():
                self._forget_failures()
                return
            if failure and breaker is not None:
                if kinds[failure] >= breaker:
                    self._stop(kinds[failure], answers[-1].error)
                else:
                    self._conclude()
                return
            failures, self._failures = self._failures, []
        for _, delayed in failures:
            for answer in delayed:
                self._answers.add(answer)
        with self._settled:
            for _, delayed in failures:
                self._end(delayed)

    def _conclude(self) -> None:
        """Keep delayed answers when no other request is pending."""
        pending = [answer for _, answers in self._failures for answer in answers]
        if not (self._all_read and pending and len(self._flying) == len(pending)):
            return
        unproven = [kind for kind, _ in self._failures if kind and CAUSES.get(kind.split()[0], CAUSES["text"]).unproven]
        if unproven and not self._endpoint.has_answered:
            self._stop(len(unproven), pending[-1].error)
            return
        self._failures.clear()
        for answer in pending:
            self._answers.add(answer)
        self._end(pending)

    def _stop(self, failed: int, message: str) -> None:
        """End the run after failed requests in a row; they count as not asked."""
        self.limits.stop(
            f"{amount(failed, 'request')} in a row {'has' if failed == 1 else 'have'} failed; the last one: {message}; "
            "the documents count as not asked"
        )
        self._forget_failures()

    def _forget_failures(self) -> None:
        for _, answers in self._failures:
            for answer in answers:
                self._flying.pop(answer.key, None)
        self._failures.clear()
        self._settled.notify_all()

    def _drop(self, request: _Request, numbers: list[int] | None = None) -> None:
        """Remove samples from the pending ones: the next run does it."""
        with self._settled:
            for number in request.numbers if numbers is None else numbers:
                self._flying.pop(request.query.keys[number], None)
            self._settled.notify_all()

    def _end(self, answers: list[Answer]) -> None:
        """Settle samples with an answer or a final failure."""
        for answer in answers:
            self.numbers.prompt_tokens += answer.prompt_tokens
            self.numbers.completion_tokens += answer.completion_tokens
            status, parsed = judge(answer, self._annotator)
            for waiting in self._flying.pop(answer.key, ()):
                waiting.state.answered += 1
                self._settle(waiting)
            if status != "success":
                self._asked_again.add(answer.key)
                self.numbers.failed[status] += 1
                self.numbers.first.setdefault(status, parsed.error)
        self._conclude()

    def _settle(self, waiting: _Waiting) -> None:
        waiting.pending -= 1
        if not waiting.pending:
            waiting.state.pending -= 1
            waiting.state.documents += 1
            waiting.state.stored += waiting.stored
            self._settled.notify_all()


def _used(reply: Reply, expected: int) -> tuple[int, int]:
    """Return the tokens of prompt and answers, as the server counts them; else about."""
    prompt = expected if reply.prompt_tokens is None else reply.prompt_tokens
    if reply.completion_tokens is not None:
        return prompt, reply.completion_tokens
    return prompt, sum(len(choice.text) for choice in reply.choices) // CHARS_PER_TOKEN


def answers_of(
    query: WindowQuery, numbers: list[int], reply: Reply, tokens: tuple[int, int]
) -> tuple[list[Answer], str]:
    """Return the answers of a reply, and their common failure; empty if an answer has a text.

    Its tokens are those of all answers, the prompt's those of the first.
    """
    now, count = int(time.time()), len(numbers)
    answers = [
        Answer(
            key=query.keys[number],
            at=now,
            seconds=round(reply.seconds / count, 3),
            text=choice.text,
            finish=choice.finish,
            prompt_tokens=0 if i else tokens[0],
            completion_tokens=tokens[1] // count + (i < tokens[1] % count),
            status=CAUSES[choice.cause].status if choice.cause else "success",
            error=choice.error,
        )
        for i, (number, choice) in enumerate(zip(numbers, reply.choices, strict=False))
    ]
    causes = [choice.cause for choice in reply.choices[:count]]
    return answers, causes[0] if all(causes) else ""
