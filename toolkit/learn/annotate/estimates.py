"""Estimates of requests by shard: samples, tokens and cost; nothing is asked here."""

from dataclasses import dataclass
from typing import Any

import msgspec
from xxhash import xxh3_64_hexdigest

from toolkit.data.dataset import Dataset
from toolkit.learn.annotate import annotator as annotators
from toolkit.learn.annotate.annotator import Annotator, answers_folder, judge
from toolkit.learn.annotate.answers import Answer
from toolkit.learn.annotate.ledger import Limits
from toolkit.storage.paths import join
from toolkit.tag import run as tagging
from toolkit.tag.plan import build
from toolkit.text.tokens import load_tokenizer

CHARS_PER_TOKEN = 4
"""Of a prompt, where no tokenizer counts them."""


def is_wanted(answer: Answer | None, annotator: Annotator, *, again: bool) -> bool:
    """Return whether a sample is to be asked for: it has no answer, or one that is asked for `again`."""
    if answer is None or answer.status == "error_server":
        return True
    return again and judge(answer, annotator)[0] != "success"


def annotator_of(work: tagging.ShardToTag) -> Annotator:
    """Return the annotator of a plan, which is its only tagger."""
    (step,) = build(work.plan)
    assert isinstance(step.tagger, Annotator)
    return step.tagger


def limits_of(annotator: Annotator) -> Limits:
    """Return the limits of a run, as a set has them."""
    return Limits(annotator.requests_per_minute, annotator.tokens_per_minute)


def ledger_folder(dataset: Dataset, name: str, annotator: Annotator) -> str:
    """Return the folder of the ledger of a set: beside its answers, on the same disk."""
    if annotator.answers == answers_folder(dataset):
        return join(dataset.bookkeeping, "ledger", name)
    return join(annotator.answers, "ledger", f"{name}-{xxh3_64_hexdigest(dataset.attributes.encode())}")


class Tokens:
    """Counts the tokens of a request: with the tokenizer of a set, else about one for four characters."""

    def __init__(self, annotator: Annotator) -> None:
        self._tokenizer = load_tokenizer(annotator.tokenizer) if annotator.tokenizer else None

    def __call__(self, body: dict[str, Any]) -> int:
        texts = [message["content"] for message in body["messages"]] if "messages" in body else [body["prompt"]]
        if self._tokenizer is None:
            return sum(map(len, texts)) // CHARS_PER_TOKEN + 1
        return sum(len(self._tokenizer.encode(text).ids) for text in texts)


@dataclass
class Estimate:
    """The pending requests; one that several documents share counts for each.

    Attributes:
        documents: of which the model is asked.
        samples: of them.
        left: samples without an answer.
        requests: for these.
        prompt_tokens: of the requests, about.
        completion_tokens: of the answers, at most.
    """

    documents: int = 0
    samples: int = 0
    left: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


def estimate(work: tagging.ShardToTag, shard: str, found: Estimate, *, again: bool) -> None:
    """Add what is left to ask of a shard; nothing is asked.

    Raises:
        ToolkitError: if it cannot be read.
    """
    annotator = annotator_of(work)
    answers = annotators.opened(annotator.answers, annotator.name)
    count = Tokens(annotator)
    for batch, _ in tagging.asked(msgspec.structs.replace(work, shard=shard)):
        found.documents += len(batch)
        for asked in (each for document, _ in batch for each in annotator.asked(document)):
            wanted = sum(is_wanted(answers.get(key), annotator, again=again) for key in asked.keys)
            requests = min(wanted, 1) if annotator.one_request else wanted
            found.samples += len(asked.keys)
            found.left += wanted
            found.requests += requests
            found.prompt_tokens += requests * count(asked.body) if requests else 0
            found.completion_tokens += wanted * annotator.max_tokens
