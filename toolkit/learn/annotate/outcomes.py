"""Outcomes of requests: the one classification of failures, by their cause.

A failure is transient (the request is repeated), of the request (its samples keep the reason), or of the endpoint (the
run ends, and no sample is marked). `CAUSES` has a row for each cause; docs/annotating.md shows the same table.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.data.documents import without_lone_surrogates
from toolkit.learn.annotate.answers import Status
from toolkit.storage.addresses import redact_text
from toolkit.storage.retrying import retry_after

Scope = Literal["transient", "request", "endpoint"]


class Cause(NamedTuple):
    """A row of the classification.

    Attributes:
        scope: Scope of the failure.
        when: Description, as the documentation has it.
        http: HTTP statuses.
        codes: Values of `code` or `type` of an error in the body, which count before the HTTP status.
        finish: Finish reasons of a choice.
        status: Status of the samples.
        unproven: True if the cause is one of the endpoint as long as the run has no answer.
    """

    scope: Scope
    when: str
    http: frozenset[int] = frozenset()
    codes: frozenset[str] = frozenset()
    finish: frozenset[str] = frozenset()
    status: Status = "error_server"
    unproven: bool = False


CAUSES: dict[str, Cause] = {
    "connection": Cause("transient", "there is no connection", unproven=True),
    "reply": Cause(
        "transient",
        "the reply is late, cut off, or not JSON with a choice (a page of a proxy, an empty list, bytes that are not "
        "UTF-8, NaN, deep nesting)",
    ),
    "server": Cause(
        "transient",
        "HTTP 408, 409, 425, 429 or 5xx, or the finish reason `error` or `abort`",
        http=frozenset({408, 409, 425, 429}),
        finish=frozenset({"error", "abort", "cancelled"}),
    ),
    "refusal": Cause(
        "request", "HTTP 400, 413, 422 or another 4xx: the text is too long, for example", status="error_refused"
    ),
    "forbidden": Cause("request", "HTTP 403", http=frozenset({403}), status="error_refused", unproven=True),
    "filter": Cause(
        "request",
        "a content filter or the model refuses: the finish reason `content_filter`, a `refusal`",
        codes=frozenset({"content_filter", "content_policy_violation", "data_inspection_failed"}),
        finish=frozenset({"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "refusal"}),
        status="error_refused",
    ),
    "size": Cause("request", "the reply is larger than an answer of `max_tokens` can be", status="error_refused"),
    "text": Cause(
        "request", "the answer has no text: `content` is null, or calls a tool", status="error_no_generated_text"
    ),
    "length": Cause(
        "request",
        "the answer is cut off at `max_tokens` (finish reason `length`), even if its text has a score",
        finish=frozenset({"length", "max_tokens", "model_length"}),
        status="error_faulty_score",
    ),
    "score": Cause(
        "request", "the text has no score or label, or one out of range; it is kept", status="error_faulty_score"
    ),
    "key": Cause(
        "endpoint",
        "HTTP 401, 402 or 407: the server does not accept the key",
        http=frozenset({401, 402, 407}),
        codes=frozenset(
            {"invalid_api_key", "authentication_error", "permission_error", "account_deactivated", "billing_error"}
        ),
    ),
    "quota": Cause(
        "endpoint",
        "the quota of the account is used up (`insufficient_quota`), whatever the HTTP status",
        codes=frozenset(
            {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error"}
        ),
    ),
    "address": Cause(
        "endpoint",
        "HTTP 404, 405, 410 or 501, or a redirect: the address is wrong, or the model is not there, or has vanished",
        http=frozenset({404, 405, 406, 410, 411, 415, 426, 501, 505, 511}),
        codes=frozenset({"model_not_found", "model_decommissioned", "deploymentnotfound", "not_found_error"}),
    ),
    "wait": Cause("endpoint", "the server asks to wait (`Retry-After`) longer than `give_up`"),
    "breaker": Cause(
        "endpoint",
        "`breaker` requests in a row fail for one cause of the request, or for transient causes after all `retries`",
    ),
}
"""All causes by name, the transient ones first, those of the endpoint last."""

_GATEWAY_TIMEOUTS = frozenset({504, 524})
"""Statuses after which the server behind the gateway may still generate an answer, and charge for it."""

MESSAGE = 300
"""Characters of a server's message that are kept."""


class NoReply(Exception):
    """A request has no usable reply.

    Attributes:
        cause: Name in `CAUSES`.
        message: Description for people.
        http: HTTP status; 0 without one.
        wait: Seconds that the server asks to wait; None without them.
        is_free: True if the server has certainly generated nothing.
    """

    def __init__(
        self, cause: str, message: str, *, http: int = 0, wait: float | None = None, is_free: bool = False
    ) -> None:
        self.cause, self.message, self.http, self.wait, self.is_free = cause, message, http, wait, is_free
        super().__init__(message)

    @property
    def row(self) -> Cause:
        """Return the row of the classification."""
        return CAUSES[self.cause]

    @property
    def kind(self) -> str:
        """Return the common kind of failures in a row."""
        return "transient" if self.row.scope == "transient" else f"{self.cause} {self.http}"


class Choice(NamedTuple):
    """An answer of a reply.

    Attributes:
        text: Text of the model; empty without one.
        finish: Finish reason.
        cause: Cause of a failure; empty if the text can be read.
        error: Description of the failure.
    """

    text: str
    finish: str = ""
    cause: str = ""
    error: str = ""


class Reply(NamedTuple):
    """A reply of a server.

    Attributes:
        choices: Answers, at least one.
        prompt_tokens: Count of the server for the prompt; None without one.
        completion_tokens: Count of the server for all answers; None without one.
        seconds: Time from the request to the reply.
    """

    choices: list[Choice]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0


def reply_of(status: int, headers: Mapping[str, str], body: bytes, seconds: float = 0.0) -> Reply:
    """Return the reply of a response.

    Raises:
        Failure: If there is none, with its cause.
    """
    if not 200 <= status < 300:
        raise _refusal(status, headers, body)
    try:
        content = msgspec.json.decode(without_lone_surrogates(body))  # an answer may be cut off within an emoji
    except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are no error of msgspec
        raise NoReply("reply", f"expected a reply in JSON, got: {error}: {_excerpt(body)}") from None
    content = content if isinstance(content, dict) else {}
    choices, fault = content.get("choices"), content.get("error")
    if not isinstance(choices, list):
        choices = []
    if fault and not choices:  # some gateways send an error with HTTP 200
        code = fault.get("code") if isinstance(fault, dict) else None
        raise _refusal(code if isinstance(code, int) and 400 <= code < 600 else 500, headers, body)
    answers = [choice_of(choice) for choice in choices if isinstance(choice, dict)]
    usable = [answer for answer in answers if answer.cause != "server"]
    if not usable:
        if answers:
            raise NoReply("server", answers[0].error)
        raise NoReply("reply", f"expected a reply with `choices`, got none: {_excerpt(body)}")
    usage = content.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Reply(usable, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")), seconds)


def finish_cause(finish: str) -> str:
    """Return the cause of a finish reason; empty if the answer is whole."""
    reason = finish.casefold()
    return next((name for name, cause in CAUSES.items() if reason in cause.finish), "")


def choice_of(choice: Mapping[str, Any]) -> Choice:
    """Return the answer of a choice of a reply."""
    message, finish = choice.get("message"), choice.get("finish_reason")
    finish = finish[:MESSAGE] if isinstance(finish, str) else ""
    holder: Mapping[str, Any] = message if isinstance(message, dict) else {"content": choice.get("text")}
    text = holder.get("content")
    if isinstance(text, list):  # of parts
        text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
    text = text if isinstance(text, str) else ""
    cause, refusal = finish_cause(finish), holder.get("refusal")
    if cause == "filter" or (isinstance(refusal, str) and refusal and not text.strip()):
        why = _excerpt(refusal.encode()) if isinstance(refusal, str) and refusal else f"finish reason {finish}"
        return Choice(text, finish, "filter", f"expected an answer, got a refusal: {why}")
    if cause == "server":
        return Choice(text, finish, cause, f"expected a whole answer, got the finish reason {finish}")
    if not text.strip():
        call = holder.get("tool_calls") or holder.get("function_call")
        got = "a call of a tool" if call else "none"
        more = "; the answer was cut off: raise `sampling.max_tokens`" if cause == "length" else ""
        return Choice("", finish, "text", f"expected a text, got {got}{more}")
    return Choice(text, finish)


def _count(value: object) -> int | None:
    """Return a number of tokens; None for anything that cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else None


def _refusal(status: int, headers: Mapping[str, str], body: bytes) -> NoReply:
    message, codes = _error(body)
    text = f"HTTP {status}: {message}"
    if 300 <= status < 400:
        target = _excerpt((headers.get("location") or "").encode(errors="replace"))
        text = f"HTTP {status}: the server redirects to {target}; name the address that answers as `endpoint`"
    by_code = (name for name, cause in CAUSES.items() if codes & cause.codes)
    by_status = (name for name, cause in CAUSES.items() if status in cause.http)
    default = "refusal" if 400 <= status < 500 else "server" if status >= 500 else "address"
    cause = next(by_code, None) or next(by_status, default)
    wait = retry_after(headers.get("retry-after"))
    return NoReply(cause, text, http=status, wait=wait, is_free=status not in _GATEWAY_TIMEOUTS)


def _error(body: bytes) -> tuple[str, set[str]]:
    """Return the message of an error, and its codes in lower case; without them the beginning of the body."""
    try:
        content = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return _excerpt(body), set()
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return _excerpt(error.encode() if isinstance(error, str) else body), set()
    codes = {code.casefold() for code in (error.get("code"), error.get("type")) if isinstance(code, str)}
    message = error.get("message")
    return _excerpt(message.encode() if isinstance(message, str) else body), codes


def _excerpt(body: bytes) -> str:
    text = " ".join(body[: 4 * MESSAGE].decode(errors="replace").split())
    return redact_text("".join(c for c in text if c.isprintable())[:MESSAGE]) or "(nothing)"
