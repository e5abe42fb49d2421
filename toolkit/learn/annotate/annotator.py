"""The tagger of an annotation set: attributes from answers that are there already; `asking` has asked for them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import xxhash

from toolkit.config.scale import Scale, ScaleOption, check as check_scale
from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.errors import ConfigError, DataError
from toolkit.label_files.reader import Aggregate
from toolkit.learn.annotate import prompt as prompts
from toolkit.learn.annotate.answers import TRUNCATED, Annotation, Answer, AnswerCache, Status
from toolkit.learn.annotate.outcomes import CAUSES, choice_of, finish_cause
from toolkit.session import cached, current
from toolkit.storage import models, paths, store_of
from toolkit.tag.tagger import Added, Neutral, Tagger
from toolkit.text.tokens import load_tokenizer

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

MAX_TOKENS = 512
"""Tokens of an answer, if `sampling` says nothing."""

TEMPERATURE = 0.7
"""Of several samples, if `sampling` says nothing; a single one is asked for with 0."""


BATCH = "batch:"
"""Prefix of `endpoint` in place of a URL scheme."""

KEY = "api_key_env"
"""The option that names the variable with the key of a server."""

PATHS = {"chat": "/chat/completions", "completions": "/completions"}
"""Of the interfaces, below the address of a server."""

SAMPLE = "sample"
"""Prefix of counts of failed samples in records, before their status."""


class Prices(ConfigStruct):
    """Prices of a million tokens.

    Attributes:
        input: the price of a million tokens of prompts
        output: the price of a million tokens of answers
    """

    input: Annotated[float, msgspec.Meta(ge=0)]
    output: Annotated[float, msgspec.Meta(ge=0)]


class WindowQuery(NamedTuple):
    """A window of a document, and the request about it.

    Attributes:
        window: Start and end of the window, in code points.
        body: Body of the request, without the number of samples.
        keys: digests of its samples.
    """

    window: tuple[int, int]
    body: dict[str, Any]
    keys: list[str]


class Annotator(Tagger):
    """Answers of a language model, sample by sample, and their aggregate.

    Attributes:
        endpoint: address of the server, up to `/v1`; or `batch:FOLDER`, for files of a batch service
        model: its name on the server
        prompt: the file of a prompt, or the content of such a file
        api: the interface of the server to use
        samples: the number of answers for each window
        sampling: max_tokens (512), temperature (0; 0.7 for several samples), top_p, seed … of the request, as the
            server takes them
        window: the part that the model sees: {characters: N} or {tokens: N}, and `pieces`; null: all
        tokenizer: tokenizer.json of the model, for windows of tokens
        score: a score in place of the prompt's
        label: a label in place of the prompt's
        scale: the scale of scores or labels: {values: […]}, {range: [0, 5], step: 1} or none; other answers are faults.
            Default: `min` and `max`, or the `labels`, of the prompt
        aggregate: the way in which the valid scores of all samples are combined
        on_length: an answer that `max_tokens` cut off fails, even if its text has a score, or is read as any other
        json: the way in which the request gives the server the `schema` of the prompt; null: not at all
        api_key_env: variable of the environment that has the key of the server
        one_request: ask for the samples of a window by one request (`n`)
        concurrency: requests at a time
        timeout: seconds in which an answer must arrive
        retries: number of times that a request is repeated after an error that may pass
        backoff: seconds before the first repetition; each pause is twice as long as the one before
        give_up: seconds that the server may ask to wait (`Retry-After`) before the run ends; default: `storage.give_up`
        breaker: the number of requests in a row that fail for one cause before the run ends; their documents count as
            not asked; null: never
        requests_per_minute: the largest number of requests in a minute
        tokens_per_minute: the largest number of tokens of prompts and answers in a minute
        prices: {input: …, output: …}: the prices of a million tokens, in your currency
        max_cost: the most that the set may cost, over all its runs; needs `prices`
        on_error: a document that fails after all retries keeps its status in its row, or fails its shard
        max_failed: share of failed documents above which the run ends with 1
        answers: folder of the answers, on a disk; default: beside the records
    """

    VERSION: ClassVar[str] = "2"

    endpoint: Annotated[str, Neutral]
    model: str
    prompt: prompts.Prompt
    api: Literal["chat", "completions"] = "chat"
    samples: Count = 1
    sampling: dict[str, Any] = {}
    window: prompts.Windows | None = None
    tokenizer: models.Model | None = None
    score: prompts.ScoreForm | None = None
    label: prompts.LabelForm | None = None
    scale: Annotated[ScaleOption, Added] = None
    aggregate: Aggregate = "mean"
    on_length: Literal["fail", "read"] = "fail"
    json: Annotated[Literal["schema", "object"] | None, Neutral] = "schema"
    api_key_env: Annotated[str | None, Neutral] = None
    one_request: Annotated[bool, Neutral] = False
    concurrency: Annotated[Count, Neutral] = 32
    timeout: Annotated[Positive, Neutral] = 300
    retries: Annotated[Annotated[int, msgspec.Meta(ge=0)], Neutral] = 6
    backoff: Annotated[Positive, Neutral] = 1
    give_up: Annotated[Positive | None, Neutral] = None
    breaker: Annotated[Count | None, Neutral] = 20
    requests_per_minute: Annotated[Positive | None, Neutral] = None
    tokens_per_minute: Annotated[Positive | None, Neutral] = None
    prices: Annotated[Prices | None, Neutral] = None
    max_cost: Annotated[Positive | None, Neutral] = None
    on_error: Annotated[Literal["keep", "fail"], Neutral] = "keep"
    max_failed: Annotated[Share, Neutral] = 0.1
    answers: Annotated[str, Neutral] = ""

    def check(self) -> None:
        if self.batch_folder is None:
            check_address(self.endpoint)
        elif not self.batch_folder.strip() or not store_of(self.batch_folder).is_local:
            raise ConfigError(f"endpoint: expected batch:FOLDER, a folder on a disk, got {self.endpoint!r}")
        elif self.one_request:
            raise ConfigError("one_request: expected it only with a server: batch services get a request a sample")
        if self.window:
            self.window.check(self.tokenizer)
        elif self.tokenizer:
            load_tokenizer(self.tokenizer)  # counts tokens for the estimate
        if self.window and self.window.tokens and self.tokenizer:
            load_tokenizer(self.tokenizer)
        if self.max_cost is not None and self.prices is None:
            raise ConfigError("max_cost: expected `prices: {input: …, output: …}` beside it, got none")
        if reserved := sorted({"model", "messages", "prompt", "n", "stream", "response_format"} & {*self.sampling}):
            raise ConfigError(f"sampling: expected parameters of sampling, got {reserved[0]!r}, which the toolkit sets")
        self.asks.check()
        check_scale(self.scale)
        if isinstance(self.scale, Scale):
            labels = self.prompt.label if self.score is None and self.label is None else self.label
            if wrong := [label for label in (labels.labels if labels else ()) if not self.scale.has(label)]:
                raise ConfigError(f"scale: expected one with all labels of the prompt, got none with {wrong[0]!r}")
            if self.scale.is_text and not labels:
                raise ConfigError("scale: expected numbers for the scores that the prompt asks for, got texts")

    @property
    def batch_folder(self) -> str | None:
        """Return the folder of requests and results of a batch service; None with a server."""
        return self.endpoint.removeprefix(BATCH) if self.endpoint.startswith(BATCH) else None

    @property
    def asks(self) -> prompts.Prompt:
        """Return the prompt with the scores or labels of the set."""
        prompt = self.prompt
        if self.score or self.label:
            prompt = msgspec.structs.replace(prompt, score=self.score, label=self.label)
        if self.scale is not None and prompt.score:
            prompt = msgspec.structs.replace(prompt, score=msgspec.structs.replace(prompt.score, min=None, max=None))
        return prompt

    @property
    def max_tokens(self) -> int:
        """Return the largest number of tokens of an answer."""
        result = self.sampling.get("max_tokens", self.sampling.get("max_completion_tokens", MAX_TOKENS))
        return result if isinstance(result, int) else MAX_TOKENS

    @property
    def name(self) -> str:
        """Return the name of the folder of the answers: one for each model, text of a prompt, and sampling."""
        prompt = self.prompt
        about = [self.model, self.api, prompt.system, prompt.prompt, prompt.schema, self.sampling]
        model = "".join(c if c.isalnum() or c in "-._" else "_" for c in self.model.replace("/", "--"))
        return f"{model[:100]}__{xxhash.xxh3_64_hexdigest(msgspec.json.encode(about, order='sorted'))}"

    def queries(self, document: Document) -> list[WindowQuery]:
        """Return the queries about a document, window by window.

        Raises:
            ConfigError: if the prompt's template cannot be filled.
        """
        text = document.text
        tokenizer = _tokenizer(self.tokenizer) if self.window and self.window.tokens else None
        windows = self.window.of(text, tokenizer) if self.window else [(0, len(text))]
        values = {"id": document.id, "source": document.source, "metadata": document.metadata}
        return [self._query((start, end), {**values, "text": text[start:end]}) for start, end in windows]

    def _query(self, window: tuple[int, int], values: Mapping[str, Any]) -> WindowQuery:
        messages = self.prompt.messages(values)
        body: dict[str, Any] = {"model": self.model}
        if self.api == "chat":
            body["messages"] = messages
        else:
            body["prompt"] = "\n\n".join(message["content"] for message in messages)
        limit = {} if {"max_tokens", "max_completion_tokens"} & {*self.sampling} else {"max_tokens": MAX_TOKENS}
        body |= {"temperature": 0 if self.samples == 1 else TEMPERATURE, **limit, **self.sampling}
        if self.prompt.schema is not None and self.api == "chat":
            body["schema"] = self.prompt.schema
        about = msgspec.json.encode([self.api, body], order="sorted")
        return WindowQuery(window, body, [xxhash.xxh3_128_hexdigest(b"%d " % i + about) for i in range(self.samples)])

    def tallied(self, values: Sequence[Any]) -> Mapping[str, int]:
        results = [value for value in values if value is not None]
        counts = Counter(value.status for value in results)
        for value in results:
            counts.update(f"{SAMPLE} {status}" for status in value.statuses if status != "success")
        return counts

    def tag_batch(self, documents: Sequence[Document]) -> list[Annotation]:
        answers = opened(self.answers, self.name)
        return [self._annotation(document, answers) for document in documents]

    def _annotation(self, document: Document, answers: AnswerCache) -> Annotation:
        results: list[Answer] = []
        windows = []
        for query in self.queries(document):
            for key in query.keys:
                if (answer := answers.get(key)) is None:
                    raise DataError("expected an answer for each sample, got none; run `toolkit annotate`")
                results.append(answer)
                windows.append(list(query.window))
        judged = [judge(answer, self) for answer in results]
        statuses = [status for status, _ in judged]
        parsed = [item for _, item in judged]
        if self.on_error == "fail" and "success" not in statuses:
            raise DataError(f"{statuses[0]}: {parsed[0].error}; `on_error: keep` would keep that in its row")
        scores = [item.score for item in parsed]
        labels = [item.label for item in parsed]
        is_whole = _covers(windows, len(document.text))
        return Annotation(
            score=prompts.aggregate([score for score in scores if score is not None], self.aggregate),
            label=prompts.most_frequent([label for label in labels if label is not None]),
            status="success" if "success" in statuses else statuses[0],
            scores=scores,
            labels=labels,
            explanations=[
                answer.text if status == "success" else prompts.excerpt(answer.text)
                for answer, status in zip(results, statuses, strict=True)
            ],
            errors=[[item.error] if item.error else [] for item in parsed],
            statuses=statuses,
            time_stamps=[answer.at for answer in results],
            windows=windows,
            tags=[] if is_whole else [TRUNCATED],
            prompt_tokens=sum(answer.prompt_tokens for answer in results),
            completion_tokens=sum(answer.completion_tokens for answer in results),
            seconds=round(sum(answer.seconds for answer in results), 3),
        )


def answers_folder(dataset: Dataset) -> str:
    """Return the folder of the answers, unless a set names one: beside the records."""
    return paths.join(dataset.bookkeeping, "answers")


def check_address(address: str) -> str:
    """Return the address of a server without a slash at its end.

    Raises:
        ConfigError: if it is none, or has a password in it.
    """
    result = address.rstrip("/")
    scheme, separator, rest = result.partition("://")
    if scheme not in ("http", "https") or not separator or not rest:
        raise ConfigError(f"expected the address of a server, such as http://127.0.0.1:8000/v1, got {address!r}")
    if "@" in rest.partition("/")[0] or "?" in rest:
        raise ConfigError("expected an address without a password or a query; name a key by `api_key_env:`")
    for path in PATHS.values():
        if result.endswith(path):
            raise ConfigError(f"expected the address up to `/v1`, got {address!r}; leave {path} out")
    return result


def judge(answer: Answer, annotator: Annotator) -> tuple[Status, prompts.ParsedAnswer]:
    """Return the status and the parsed answer of a sample."""
    if answer.status != "success":
        return answer.status, prompts.ParsedAnswer(error=answer.error)
    choice = choice_of({"text": answer.text, "finish_reason": answer.finish})
    if choice.cause:
        return CAUSES[choice.cause].status, prompts.ParsedAnswer(error=choice.error)
    parsed = prompts.read(answer.text, annotator.asks)
    if parsed.score is not None and isinstance(annotator.scale, Scale) and not annotator.scale.has(parsed.score):
        parsed = prompts.ParsedAnswer(error=f"expected a score on {annotator.scale}, got {parsed.score:g}")
    if finish_cause(answer.finish) == "length":
        if parsed.error:
            return CAUSES["length"].status, parsed._replace(error=f"{parsed.error}; {_CUT_OFF}")
        is_whole = annotator.asks.form.field is not None and answer.text.rstrip(" \n\r\t`").endswith("}")
        if annotator.on_length == "fail" and not is_whole:
            return CAUSES["length"].status, prompts.ParsedAnswer(error=f"expected a whole answer; {_CUT_OFF}")
    return ("success" if not parsed.error else CAUSES["score"].status), parsed


_CUT_OFF = "the answer was cut off: raise `sampling.max_tokens`"


def _covers(windows: Sequence[Sequence[int]], length: int) -> bool:
    """Return True if windows cover a text of so many code points."""
    at = 0
    for start, end in sorted(map(list, windows)):
        if start > at:
            return False
        at = max(at, end)
    return at >= length


@cached(2)
def _tokenizer(path: str | None) -> Any:
    assert path
    return load_tokenizer(path)


def _opened() -> dict[tuple[str, str], AnswerCache]:
    return current().get_or_make(AnswerCache, dict[tuple[str, str], AnswerCache])


def opened(folder: str, name: str) -> AnswerCache:
    """Return the answers of a folder; they stay open until `close`."""
    intervals = _opened()
    if (folder, name) not in intervals:
        intervals[folder, name] = AnswerCache(f"{folder.rstrip('/')}/{name}")
    return intervals[folder, name]


def close() -> None:
    """Close the answers of this process: another one may have written more when they are opened again."""
    for answers in (cached_answers := _opened()).values():
        answers.__exit__()
    cached_answers.clear()
