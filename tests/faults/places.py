"""The two places that the corpus lies in, a bucket and a folder: what is there, put back as it was, watched, broken."""

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.faults.kinds import kind_of
from tests.storage import buckets
from tests.storage.servers import ACCESS, SECRET, Asked, Azurite, Gcs, Seaweed, proxy

Requests = Counter[tuple[str, str]]
"""How often each request was made of each kind of file."""


@dataclass(frozen=True)
class File:
    """A file as it is: what tells that it has not changed, and its bytes."""

    stamp: str
    data: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


State = dict[str, File]
"""All files below the root, by path; unfinished uploads have names with ``?upload=``."""


@dataclass
class Strike:
    """One fault, as it happens to some requests.

    Attributes:
        fault: of the place.
        kind, request: which are struck.
        times: how many; 0 is all.
        spreads: whether from the first one on all requests are.
        paths: below the root, of those that were struck.
        seen: all requests.
    """

    fault: str = ""
    kind: str = ""
    request: str = ""
    times: int = 0
    spreads: bool = False
    paths: list[str] = field(default_factory=list)
    seen: Requests = field(default_factory=Counter)


class Place(Protocol):
    """Where a corpus lies.

    Attributes:
        root: of the corpus.
        answers: the folder for those of language models, which is on a disk.
        labels: the file for those that people give by hand, likewise.
    """

    root: str
    answers: str
    labels: str

    def state(self) -> State:
        """What is there."""

    def restore(self, wanted: Mapping[str, File]) -> None:
        """Makes it what it was."""

    def striking(self, strike: Strike) -> Any:
        """A context with ``env`` and ``disk`` of the process that a strike meets; fills `paths` and `seen`."""


# --- a bucket ---------------------------------------------------------------------------------------------------------

BUCKET = "faults"


class Bucket:
    """A folder in a bucket of a real server, behind a proxy.

    Attributes:
        watch: is told each request, if there is one; it may give a fault.
    """

    watch: Callable[[Asked], str] | None = None
    root = f"s3://{BUCKET}/c"

    def __init__(self, server: Seaweed, beside: Path) -> None:
        import boto3

        self.answers, self.labels = str(beside / "answers"), str(beside / "labels.jsonl")
        self._server: Seaweed | Gcs | Azurite = server
        keys = {"aws_access_key_id": ACCESS, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
        self._client = boto3.client("s3", endpoint_url=server.url, **keys)
        if BUCKET not in {each["Name"] for each in self._client.list_buckets()["Buckets"]}:
            self._client.create_bucket(Bucket=BUCKET)
        self._known: dict[str, bytes] = {}
        self._strike = Strike()
        self._proxy = proxy(lambda: server.port, self)
        self._url = self._proxy.__enter__()

    def close(self) -> None:
        self._proxy.__exit__(None, None, None)

    def next(self, asked: Asked) -> str:
        """What the proxy does to a request."""
        if self.watch and (fault := self.watch(asked)):
            return fault
        strike = self._strike
        relative = asked.key.partition("/")[2].removeprefix("c").strip("/")
        kind = kind_of(relative)
        strike.seen[asked.what, kind] += 1
        is_it = (asked.what, kind) == (strike.request, strike.kind) or (strike.spreads and strike.paths)
        if not strike.fault or not is_it or (strike.times and len(strike.paths) >= strike.times):
            return ""
        strike.paths.append(relative)
        if strike.fault == "cut" and asked.what in SENDING:
            return "half"
        return strike.fault

    def state(self) -> State:
        found: State = {}
        more: dict[str, str] = {}
        while True:
            page = self._client.list_objects_v2(Bucket=BUCKET, Prefix="c/", **more)
            for entry in page.get("Contents", ()):
                found[entry["Key"].removeprefix("c/")] = File(entry["ETag"], self._read(entry["Key"], entry["ETag"]))
            if not page.get("IsTruncated"):
                break
            more = {"ContinuationToken": page["NextContinuationToken"]}
        for entry in self._client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ()):
            found[f"{entry['Key'].removeprefix('c/')}?upload={entry['UploadId']}"] = File(entry["UploadId"], b"")
        return found

    def _read(self, key: str, etag: str) -> bytes:
        """What an ETag stands for is asked for once."""
        if etag not in self._known:
            self._known[etag] = self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return self._known[etag]

    def restore(self, wanted: Mapping[str, File]) -> None:
        shutil.rmtree(self.answers, ignore_errors=True)
        Path(self.labels).unlink(missing_ok=True)
        now = self.state()
        for name, file in now.items():
            key = f"c/{name}".partition("?upload=")[0]
            if "?upload=" in name:
                self._client.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=file.stamp)
            elif name not in wanted:
                self._client.delete_object(Bucket=BUCKET, Key=key)
        for name, file in wanted.items():
            if name not in now or now[name].stamp != file.stamp:
                self._put(f"c/{name}", file)

    def _put(self, key: str, file: File) -> None:
        """As it was put before: the ETag tells whether that was by a multipart upload."""
        given = {"Bucket": BUCKET, "Key": key}
        if "-" not in file.stamp:
            self._client.put_object(**given, Body=file.data)
            return
        upload = {**given, "UploadId": self._client.create_multipart_upload(**given)["UploadId"]}
        part = self._client.upload_part(**upload, PartNumber=1, Body=file.data)
        listed = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
        self._client.complete_multipart_upload(**upload, MultipartUpload=listed)

    @contextmanager
    def striking(self, strike: Strike) -> Iterator[tuple[dict[str, str], None]]:
        self._strike = strike
        try:
            yield self._server.environment(self._url), None
        finally:
            self._strike = Strike()


class Cloud(Bucket):
    """A folder in a bucket of another cloud, likewise; unfinished uploads are not looked at.

    Args:
        server: of the cloud.
        beside: folder for what is not in the bucket.
    """

    def __init__(self, server: Gcs | Azurite, beside: Path) -> None:
        self.answers, self.labels = str(beside / "answers"), str(beside / "labels.jsonl")
        self.root, self._server = f"{server.root}/c", server
        (variable,) = server.environment(server.url).values()
        self._bucket = buckets.GsBucket(variable) if isinstance(server, Gcs) else buckets.AzContainer(variable)
        self._known, self._strike = {}, Strike()
        self._proxy = proxy(lambda: server.port, self)
        self._url = self._proxy.__enter__()

    def state(self) -> State:
        listed = self._bucket.listed("c/")
        return {key.removeprefix("c/"): File(stamp, self._content(key, stamp)) for key, stamp in listed.items()}

    def _content(self, key: str, stamp: str) -> bytes:
        if f"{key} {stamp}" not in self._known:
            self._known[f"{key} {stamp}"] = self._bucket.get(key)
        return self._known[f"{key} {stamp}"]

    def restore(self, wanted: Mapping[str, File]) -> None:
        shutil.rmtree(self.answers, ignore_errors=True)
        Path(self.labels).unlink(missing_ok=True)
        now = self.state()
        for name in now.keys() - wanted.keys():
            self._bucket.delete(f"c/{name}")
        for name, file in wanted.items():
            if name not in now or now[name].data != file.data:
                self._bucket.put(f"c/{name}", file.data)


SENDING = ("PUT", "UPLOAD", "COMPLETE", "DELETE_MANY")
"""Requests with a body."""


# --- a folder ---------------------------------------------------------------------------------------------------------


class Folder:
    """A folder on disk."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder.resolve() / "c")
        self.answers, self.labels = f"{self.root}/data/.toolkit/answers", f"{self.root}/labels.jsonl"
        self._away = Path(self.root + ".away")

    def state(self) -> State:
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                found[str(path.relative_to(self.root))] = File(str(path.stat().st_mtime_ns), path.read_bytes())
        return found

    def restore(self, wanted: Mapping[str, File]) -> None:
        if self._away.exists():
            shutil.rmtree(self.root, ignore_errors=True)
            self._away.rename(self.root)
        now = self.state()
        for name in now.keys() - wanted.keys():
            Path(self.root, name).unlink()
        for folder, _, _ in os.walk(self.root, topdown=False):
            if not os.listdir(folder):
                Path(folder).rmdir()
        for name, file in wanted.items():
            if now.get(name) != file:
                self.put(name, file)

    def put(self, name: str, file: File) -> None:
        """Writes a file with its time."""
        path = Path(self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        os.utime(path, ns=(int(file.stamp), int(file.stamp)))

    @contextmanager
    def striking(self, strike: Strike) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
        with tempfile.TemporaryDirectory() as folder:
            trace, struck = Path(folder, "trace"), Path(folder, "struck")
            given = {"fault": strike.fault, "kind": strike.kind, "request": strike.request, "times": strike.times}
            yield {}, {"root": self.root, "trace": str(trace), "struck": str(struck), **given}
            if trace.exists():
                for line in trace.read_text().splitlines():
                    request, kind = line.split()
                    strike.seen[request, kind] += 1
            if struck.exists():
                strike.paths += struck.read_text().splitlines()
        if self._away.exists():  # what was mounted there is back
            shutil.rmtree(self.root, ignore_errors=True)
            self._away.rename(self.root)
