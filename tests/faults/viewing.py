"""The viewer as a command that ends: what a browser asks of it, and what the answers say."""

import http.client
import json
import sys
import threading
import urllib.parse
from typing import Any

from toolkit.view.server import ViewServer

FILTERS = (
    {"where": "tongue.label != 'none' and not known", "sort": "document.chars"},
    {"where": "document.text != 'none'"},
    {"rule": "kept"},
)


def browse() -> None:
    """Let the server answer what a browser asks: of each document, of filters, an order, and why one is dropped.

    Then a document is given a label by hand. The answers are printed. What they say of faults goes to standard error;
    then the status is 1.
    """
    ViewServer.serve = _asked  # type: ignore[assignment,method-assign]
    ViewServer.url = property(lambda _: "its address, with a token")  # type: ignore[assignment,method-assign]


def _asked(server: ViewServer) -> None:
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    browser = _Browser(server)
    try:
        browser.ask("view")
        listed = browser.ask("rows", count=100).get("rows", [])
        for row in listed:
            browser.ask("document", shard=row["at"][0], row=row["at"][1])
        for given in FILTERS:
            browser.ask("rows", count=100, **given)
        browser.ask("find", id="0-1")
        browser.ask("explain", shard=0, row=0)
        if listed:
            browser.label(listed[0], "keep")
    finally:
        server.end()
    if browser.faults:
        print("\n".join(dict.fromkeys(browser.faults)), file=sys.stderr)
        raise SystemExit(1)


class _Browser:
    """Asks as the page does; notes what answers say of faults."""

    def __init__(self, server: ViewServer) -> None:
        self._server = server
        self.faults: list[str] = []

    def ask(self, name: str, **given: Any) -> Any:
        """Return an answer, that of a query when it is done."""
        while True:
            found = self._send("GET", f"{name}?{urllib.parse.urlencode(given)}")
            if found.get("done", True):
                break
        return self._noted(found)

    def label(self, row: dict[str, Any], label: str) -> Any:
        """Give a document of the list a label, as the page does when somebody presses a button."""
        given = {"at": row["at"], "id": row["id"], "question": "verdict", "label": label}
        return self._noted(self._send("POST", "label", json.dumps(given)))

    def _send(self, method: str, asked: str, body: str | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.server_address[1])
        headers = {"X-Token": self._server.token, **({"Content-Type": "application/json"} if body else {})}
        connection.request(method, f"/api/{asked}", body, headers)
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def _noted(self, found: Any) -> Any:
        self.faults += [found["error"]] if "error" in found else found.get("faults", [])
        self.faults += [fault for row in found.get("rows", ()) for fault in row.get("faults", ())]
        print(json.dumps(found))
        return found
