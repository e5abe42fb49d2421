"""An OpenAI-compatible server: requests with retries, and replies; `outcomes` says what a reply is."""

import os
import random
import time
import urllib.request
from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from toolkit.errors import ConfigError, duration
from toolkit.learn.annotate.annotator import KEY, PATHS, Annotator, check_address
from toolkit.learn.annotate.ledger import Ledger, RateLimiter
from toolkit.learn.annotate.outcomes import MESSAGE, NoReply, Reply, reply_of
from toolkit.session import current
from toolkit.storage.addresses import redact_text
from toolkit.storage.retrying import bound_headers

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
