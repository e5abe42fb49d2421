"""What is known of a document that language models, or people, have annotated: the value of an annotation set.

All lists but `tags` have an element for each sample, in the order in which samples are numbered: those of the first
window, then those of the second. They are what ml_filter calls `scores`, `explanations`, `errors` and `time_stamps`.
"""

from typing import Literal

import msgspec

Status = Literal["success", "error_server", "error_refused", "error_no_generated_text", "error_faulty_score"]
"""What became of a sample.

``error_server``: the server did not answer, or answered with an error that may pass; a rerun asks again.
``error_refused``: the server refused the request (HTTP 4xx); it would again.
``error_no_generated_text``: there was an answer without text.
``error_faulty_score``: the text has no score or label, or one that is out of range.
"""

TRUNCATED = "truncated"
"""The tag of a document of which the model saw a part."""


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """What a language model says of the document, sample by sample.

    Attributes:
        score: what the valid scores of all samples come to; null without one.
        label: the label that most samples give, the first of those with as many; null without one.
        status: success if a sample has a valid score or label; else why the first has none.
        scores: the score of each sample; null where there is none, or the prompt asks for a label.
        labels: the label of each sample; null where there is none, or the prompt asks for a score.
        explanations: what the model wrote for each sample; of what could not be read an excerpt.
        errors: of each sample, in words; an empty list for a valid one.
        statuses: of each sample.
        time_stamps: when the answer of each sample came, in seconds since 1970 (UTC).
        windows: what the model saw for each sample, [start, end] in code points of the text.
        tags: truncated, if the windows do not cover the text.
        prompt_tokens: of all samples, as the server counts.
        completion_tokens: of all samples, as the server counts.
        seconds: from the requests to their answers, of all samples.
    """

    score: float | None
    label: str | None
    status: Status
    scores: list[float | None]
    labels: list[str | None]
    explanations: list[str]
    errors: list[list[str]]
    statuses: list[Status]
    time_stamps: list[int]
    windows: list[list[int]]
    tags: list[str]
    prompt_tokens: int
    completion_tokens: int
    seconds: float
