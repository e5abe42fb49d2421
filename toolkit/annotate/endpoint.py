"""An OpenAI-compatible server: requests with retries, and answers; the one place that knows HTTP and that interface."""

import email.utils
import os
import random
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.annotate.annotator import KEY, PATHS, Annotator, check_address
from toolkit.annotate.limits import Limits
from toolkit.annotate.record import Status
from toolkit.errors import ConfigError
from toolkit.storage.addresses import cleaned

CONNECT_SECONDS = 20.0
LONGEST_WAIT = 900.0
"""Seconds that are waited before a retry, at most, whatever the server says."""

_BODY_BYTES = 64 << 20
_MESSAGE = 300
_MAY_PASS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_NEVER = frozenset({401, 402})
"""Statuses that say something of the key, and nothing of the request."""

_SUSPECT = frozenset({403, 404, 405, 501})
"""The same, while no request has been answered."""


class Refused(Exception):
    """A request has finally failed.

    Attributes:
        status: of the samples that it asked for.
        message: in words.
        is_of_all: whether any other request would fail, too.
    """

    def __init__(self, status: Status, message: str, *, is_of_all: bool = False) -> None:
        self.status, self.message, self.is_of_all = status, message, is_of_all
        super().__init__(message)


class Interrupted(Exception):
    """A request was given up because the run stops; it may be asked again."""


class Choice(msgspec.Struct):
    """A text that a server has generated; of chats in `message`."""

    text: str | None = None
    message: dict[str, Any] | None = None
    finish_reason: str | None = None

    @property
    def said(self) -> str:
        found = self.text if self.message is None else self.message.get("content")
        if isinstance(found, list):  # of parts
            found = "".join(str(part.get("text", "")) for part in found if isinstance(part, dict))
        return found if isinstance(found, str) else ""


class Usage(msgspec.Struct):
    """Tokens, as the server counts them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Reply(msgspec.Struct):
    """What a server replies.

    Attributes:
        seconds: from the last request to the reply.
    """

    choices: list[Choice]
    usage: Usage | None = None
    seconds: float = 0.0


class _Fault(Exception):
    """A request has failed, and may be made again.

    Attributes:
        wait: seconds before that, if the server says how many.
        is_away: whether there was no connection.
    """

    def __init__(self, message: str, wait: float | None = None, *, is_away: bool = False) -> None:
        self.message, self.wait, self.is_away = message, wait, is_away
        super().__init__(message)


_REPLY = msgspec.json.Decoder(Reply)


class Endpoint:
    """Asks a server; threads may share it.

    Args:
        of: what is asked for, how and where.
        limits: of the run; told of seconds in which the server wants no request.

    Attributes:
        retried: requests that were made again.
        trouble: why the last request has failed; empty once one has an answer.

    Raises:
        ConfigError: for an address that is none, or a key that is not in the environment.
    """

    def __init__(self, of: Annotator, limits: Limits) -> None:
        self._of, self._limits = of, limits
        self._url = check_address(of.endpoint) + PATHS[of.api]
        self._headers = {"Content-Type": "application/json", **_authorization(of.api_key_env)}
        self._pool = _pool(self._url, of.concurrency)
        self._has_answered = False
        self.retried = 0
        self.trouble = ""

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def ask(self, body: Mapping[str, Any], samples: int) -> Reply:
        """Return the reply to a request for some samples.

        Raises:
            Refused: if it finally fails.
            Interrupted: if the run stops.
        """
        data = msgspec.json.encode(self._body(body, samples))
        for attempt in range(self._of.retries + 1):
            try:
                return self._ask(data)
            except _Fault as fault:
                self.trouble = fault.message
                if attempt == self._of.retries:
                    times = f" ({attempt + 1} times)" if attempt else ""
                    if is_of_all := fault.is_away and not self._has_answered:
                        times += f"; is there a server at {cleaned(self._of.endpoint)}?"
                    raise Refused("error_server", fault.message + times, is_of_all=is_of_all) from None
                self.retried += 1
                wait = self._of.backoff * 2**attempt * random.uniform(0.75, 1.25)  # noqa: S311  # no secret
                if fault.wait is not None:
                    wait = max(fault.wait, 0.0)
                    self._limits.slow_down(min(wait, LONGEST_WAIT))
                if not (self._limits.pause(min(wait, LONGEST_WAIT)) and self._limits.turn(len(data) // 4)):
                    raise Interrupted from None
        raise AssertionError

    def _body(self, body: Mapping[str, Any], samples: int) -> dict[str, Any]:
        found = {name: value for name, value in body.items() if name != "schema"}
        if samples > 1:
            found["n"] = samples
        if "schema" in body and self._of.json == "schema":
            named = {"name": "answer", "schema": body["schema"], "strict": True}
            found["response_format"] = {"type": "json_schema", "json_schema": named}
        elif "schema" in body and self._of.json == "object":
            found["response_format"] = {"type": "json_object"}
        return found

    def _ask(self, data: bytes) -> Reply:
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
                found = self._read(response, begin)
            finally:
                response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            is_away = isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)
            raise _Fault(_told(error), is_away=is_away) from None
        if response.status != 200:
            raise self._fault(response.status, response.headers, found)
        try:
            reply = _REPLY.decode(found)
        except msgspec.MsgspecError as error:
            raise _Fault(f"expected a reply with `choices`, got: {error}: {_excerpt(found)}") from None
        self._has_answered, self.trouble = True, ""
        reply.seconds = time.monotonic() - begin
        return reply

    def _read(self, response: Any, begin: float) -> bytes:
        """Return the body; who sends it drop by drop is given up, too."""
        found = b""
        while block := response.read1(1 << 16):
            found += block
            if time.monotonic() - begin > self._of.timeout:
                response.close()
                raise _Fault(f"expected a whole reply within {self._of.timeout:g} s, got a part")
            if len(found) > _BODY_BYTES:
                response.close()
                raise Refused("error_refused", f"expected a reply of at most {_BODY_BYTES:,} bytes, got more")
        return found

    def _fault(self, status: int, headers: Mapping[str, str], body: bytes) -> Exception:
        message = f"HTTP {status}: {_excerpt(_said(body))}"
        if status in _MAY_PASS:
            return _Fault(message, _seconds(headers.get("retry-after")))
        is_of_all = status in _NEVER or (status in _SUSPECT and not self._has_answered)
        return Refused("error_refused", message, is_of_all=is_of_all)


def _authorization(variable: str | None) -> dict[str, str]:
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"{KEY}: expected the key of the server in the variable {variable}, got none")
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"{KEY}: expected a key of printable ASCII characters in {variable}, got others")
    return {"Authorization": f"Bearer {key}"}


def _pool(url: str, connections: int) -> Any:
    """Return what keeps connections, through the proxy that the environment names for the address."""
    import urllib3

    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    options: dict[str, Any] = {"maxsize": connections, "block": False}
    if scheme == "https":
        options["ca_certs"] = os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE") or _authorities()
    proxy = urllib.request.getproxies().get(scheme)
    if proxy and not urllib.request.proxy_bypass(host):
        return urllib3.ProxyManager(proxy, **options)
    return urllib3.PoolManager(**options)


def _authorities() -> str:
    import certifi

    return certifi.where()


def _told(error: Exception) -> str:
    """Return what a library says of a connection, without the objects and addresses in it."""
    said = str(error).rpartition("): ")[2] or str(error)
    return cleaned(f"expected a reply, got: {said}")[:_MESSAGE]


def _said(body: bytes) -> bytes:
    """Return the message of an error, where the server has one."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return body
    error = found.get("error", found) if isinstance(found, dict) else found
    message = error.get("message") if isinstance(error, dict) else error
    return message.encode() if isinstance(message, str) else body


def _excerpt(body: bytes) -> str:
    text = " ".join(body[: 4 * _MESSAGE].decode(errors="replace").split())
    return cleaned("".join(c for c in text if c.isprintable())[:_MESSAGE]) or "(nothing)"


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds that a server asks to wait: a number, or a date."""
    if not retry_after:
        return None
    try:
        return max(float(retry_after), 0.0)
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None
