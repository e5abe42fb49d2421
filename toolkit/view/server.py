"""The server of the page: for one person, on this machine, who has the token.

It is bound to 127.0.0.1. Other people on the machine, and pages of others in the same browser, reach that port, too.
The token keeps them out: it is in the address that is printed; from there the page sends it with each question in a
header, which pages of others cannot set without being asked for (CORS), and nobody answers that here. There are no
cookies: those of 127.0.0.1 would be sent to all its ports. A name that an attacker lets point here (DNS rebinding) is
in the header `Host`, and is refused.
"""

import hmac
import json
import secrets
import sys
import traceback
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from toolkit.distribution import NAME
from toolkit.errors import ConfigError, ToolkitError, advice, errors_from
from toolkit.interrupts import AWAKE, check
from toolkit.pages import assets
from toolkit.session import current
from toolkit.storage.json_files import know_types
from toolkit.storage.threads import Thread
from toolkit.view.answers import CorpusAnswers

ADDRESS = "127.0.0.1"
TOKEN = "X-Token"  # noqa: S105  # the name of the header
HOSTS = ("127.0.0.1", "localhost")
"""Names of this machine. The port may differ, where a tunnel (``ssh -L``) leads to it."""

BODY = 1 << 16
"""Bytes of a question."""

TIMEOUT = 60.0
"""Seconds that a connection may be silent."""

STYLES = ("static/base.css", "static/document.css", "static/view.css")
SCRIPTS = ("static/dom.js", "static/document.js", "static/view.js")

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""The policy of what is no page."""


class ViewServer(ThreadingHTTPServer):
    """Serves the page and the answers.

    Args:
        answers: Answers of a corpus.
        port: 0 for one that is free.
        debug: True if tracebacks of faults of ours are shown.

    Attributes:
        url: Address with the token, which gives access.
    """

    daemon_threads = True
    block_on_close = False  # a question that is being answered does not hold up the end

    def __init__(self, answers: CorpusAnswers, port: int = 0, *, debug: bool = False) -> None:
        self.answers, self.debug, self._session = answers, debug, current()
        self.token = secrets.token_urlsafe(32)
        self.page, self.policy = _page()
        know_types()  # each question is answered by a thread of its own
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise ConfigError(f"--port {port}: expected a port that is free, got: {advice(error)}") from None

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{ADDRESS}:{self.server_address[1]}/?token={self.token}"

    def serve(self) -> None:
        """Answer until the process is interrupted: by Ctrl-C, or SIGTERM."""
        thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(AWAKE)
                check()
        finally:
            self.end()

    def end(self) -> None:
        """Answer no more questions."""
        self.shutdown()
        self.server_close()
        self.answers.close()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer in the session of the command."""
        with self._session.bound():
            super().process_request_thread(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore closed connections."""
        if self.debug and not isinstance(sys.exception(), ConnectionError | TimeoutError):
            traceback.print_exc()


def _page() -> tuple[bytes, str]:
    """Return the page, and its policy: its own styles and scripts alone, and questions to this server."""
    own = {"connect_src": "'self'"}
    result = assets.page("view.html", STYLES, SCRIPTS, title=f"{NAME} view", more=own)
    styles, scripts = ([assets.text(name) for name in names] for names in (STYLES, SCRIPTS))
    more = {"frame_ancestors": "'none'", "require_trusted_types_for": "'script'", "trusted_types": "'none'"}
    return result.encode(), assets.policy(styles, scripts, **own, **more)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = NAME, ""
    timeout = TIMEOUT
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def __getattr__(self, name: str) -> Any:
        """Refuse all other methods in the same way."""
        if name.startswith("do_"):
            return lambda: self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "expected GET or POST")
        raise AttributeError(name)

    def _answer(self, method: Callable[[str, Mapping[str, str]], None]) -> None:
        """Answer an authorised request."""
        host = self.headers.get("Host", "")
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if len(self.headers.get_all("Host", [])) != 1 or host.partition(":")[0].lower() not in HOSTS:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, f"expected {' or '.join(HOSTS)} in the address")
        elif not self._is_of_the_page(host, parts.path):
            self._refuse(HTTPStatus.FORBIDDEN, "expected a request of the page itself")
        elif not self._has_token(query if parts.path == "/" else {}):
            self._refuse(HTTPStatus.FORBIDDEN, "expected the token: open the whole address that `toolkit view` printed")
        else:
            method(parts.path, query)

    def _is_of_the_page(self, host: str, path: str) -> bool:
        """Return True unless another site's page sent the request; but a link may lead from there to the page."""
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        mine = f"http://{host}"
        return origin in (None, mine) and (site in ("same-origin", "none") or path == "/")

    def _has_token(self, query: Mapping[str, str]) -> bool:
        """Return True if the request has the token: in the address of the page, in the header of all else."""
        token = query.get("token", "") if query else self.headers.get(TOKEN, "")
        return hmac.compare_digest(token.encode(errors="replace"), self.server.token.encode())

    def _get(self, path: str, query: Mapping[str, str]) -> None:
        if path == "/":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8", self.server.policy)
            return
        answer = self.server.answers.methods.get(path.removeprefix("/api/")) if path.startswith("/api/") else None
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, "expected an address that this page has")
            return
        self._say(lambda: answer(query))

    def _post(self, path: str, query: Mapping[str, str]) -> None:
        length = self.headers.get("Content-Length", "")
        if path != "/api/label":
            self._refuse(HTTPStatus.NOT_FOUND, "expected a label")
        elif self.headers.get_content_type() != "application/json" or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        elif not length.isdecimal() or int(length) > BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {BODY:,} bytes")
        else:
            body = self.rfile.read(int(length))
            self._say(lambda: self.server.answers.label(_object(body)))

    def _say(self, answer: Callable[[], dict[str, Any]]) -> None:
        """Send an answer, or why there is none."""
        try:
            status, results = HTTPStatus.OK, answer()
        except ToolkitError as error:
            status, results = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except OSError as error:  # a full disk
            status, results = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": advice(error)}
        except Exception as error:
            if self.server.debug:
                traceback.print_exc()
            message = f"{type(error).__name__}: {error}; this is a fault of `toolkit view`, see --debug"
            status, results = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": message}
        self._send(status, _encoded(results), "application/json")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # what it sent may not have been read
        self._send(status, f"{message}\n".encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str = NOTHING) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse an invalid request of HTTP; nothing of it is repeated."""
        self.command = getattr(self, "command", "") or ""
        self.requestline = getattr(self, "requestline", "")
        self.request_version = getattr(self, "request_version", self.protocol_version)
        self._refuse(HTTPStatus(code), HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: addresses have the token in them."""


def _object(body: bytes) -> Mapping[str, Any]:
    with errors_from("expected JSON, got", of=(msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        result = msgspec.json.decode(body)
    if not isinstance(result, dict):
        raise ConfigError("expected an object")
    return result


def _encoded(answer: Mapping[str, Any]) -> bytes:
    """Return an answer as JSON; texts may have halves of characters, which msgspec refuses."""
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:
        return json.dumps(answer).encode()
