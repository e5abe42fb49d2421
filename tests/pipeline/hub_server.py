"""A Hub on loopback: what `huggingface_hub` asks of it to publish a dataset, and what a fetch reads.

It answers as the real one does for repositories, trees, uploads (LFS, in one piece or in several), commits and files.
Told so, it fails: ``fails["commit"] = [503, 503]`` answers the next two commits with 503.
"""

import base64
import hashlib
import json
import threading
import urllib.parse
from collections import Counter, defaultdict
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests import serving as servers
from tests.waiting import PATIENCE

TOKEN = "hf_" + "t" * 30
PIECE = 700
"""Bytes of a piece of a file that is uploaded in several."""

LARGE = (".gz", ".parquet")
"""Files that are kept as LFS objects."""


@dataclass
class Repo:
    """A dataset: its files by path, LFS ones as (oid, size)."""

    private: bool
    files: dict[str, bytes | tuple[str, int]] = field(default_factory=dict)
    commits: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, dict[str, bytes | tuple[str, int]]] = field(default_factory=dict)

    @property
    def sha(self) -> str:
        sha = hashlib.sha1(f"{len(self.commits)}{sorted(self.files)}".encode()).hexdigest()
        self.versions[sha] = dict(self.files)
        return sha


class Hub(servers.Server):
    """The server.

    Attributes:
        repos: by USER/NAME.
        objects: uploaded content, by sha256.
        fails: by kind of request, what the next ones are answered with: a status, ``lost`` (done, and no answer), or
            ``hang``.
        asked: how often each kind of request came.
        sent: bytes of content that were uploaded, by sha256; in pieces, by its number, too.
        in_pieces: whether uploads are in several pieces.
        echoes: whether what it says of a failure has the token in it.
        held: set when a request is held by ``hang``.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.repos: dict[str, Repo] = {}
        self.echoes = False
        self.objects: dict[str, bytes] = {}
        self.fails: dict[str, list[Any]] = defaultdict(list)
        self.asked: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.pieces: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.in_pieces = False
        self.held = threading.Event()
        self.headers: list[str] = []

    def content(self, found: bytes | tuple[str, int]) -> bytes:
        return found if isinstance(found, bytes) else self.objects[found[0]]


class _Handler(servers.Handler):
    server: Hub

    def respond(self) -> None:
        hub = self.server
        path, _, query = self.path.partition("?")
        path = urllib.parse.unquote(path)
        self.query = urllib.parse.parse_qs(query)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) if self.command != "HEAD" else b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.body = self._chunks()
        parts = path.strip("/").split("/")
        kind = self._kind(parts)
        hub.asked[kind] += 1
        hub.headers.append(self.headers.get("Authorization", ""))
        fault = hub.fails[kind].pop(0) if hub.fails[kind] else None
        if fault == "hang":
            hub.held.set()
            hub.release.wait(PATIENCE)
            self.close_connection = True
            return
        if isinstance(fault, int):
            self._json(
                {"error": f"told to fail with {fault}{self.headers.get('Authorization') if hub.echoes else ''}"},
                fault,
                {"Retry-After": "0"},
            )
            return
        if (
            kind not in ("put", "complete", "resolve", "cdn", "look", "tree")
            and self.headers.get("Authorization") != f"Bearer {TOKEN}"
        ):
            self._json({"error": "Invalid credentials in Authorization header"}, 401)
            return
        self.lost = fault == "lost"
        getattr(self, f"_{kind}")(parts)

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _kind(self, parts: list[str]) -> str:
        if parts[0] in ("put", "cdn", "complete", "verify"):
            return parts[0]
        if parts[-1] == "create":
            return "create"
        if parts[-1] == "validate-yaml":
            return "yaml"
        if parts[-1] == "batch":
            return "batch"
        if parts[0] == "api":
            return parts[4] if len(parts) > 4 and parts[4] in ("tree", "preupload", "commit") else "look"
        return "resolve"

    def _repo(self, name: str) -> Repo | None:
        repo = self.server.repos.get(name)
        if repo and repo.private and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            repo = None
        if repo is None:
            self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        return repo

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self, parts: list[str]) -> None:
        if repo := self._repo("/".join(parts[2:4])):
            self._json({"id": "/".join(parts[2:4]), "sha": repo.sha, "private": repo.private, "siblings": []})

    def _tree(self, parts: list[str]) -> None:
        repo = self._repo("/".join(parts[2:4]))
        if repo is None:
            return
        listed = []
        folder, is_deep = (
            "".join(f"{part}/" for part in parts[6:]),
            self.query.get("recursive", [""])[0].lower() == "true",
        )
        for path, found in sorted(repo.versions.get(parts[5], repo.files).items()):
            if not path.startswith(folder) or (not is_deep and "/" in path[len(folder) :]):
                continue
            if isinstance(found, bytes):
                blob = hashlib.sha1(b"blob %d\0" % len(found) + found).hexdigest()
                listed.append({"type": "file", "path": path, "size": len(found), "oid": blob})
            else:
                lfs = {"oid": found[0], "size": found[1], "pointerSize": 130}
                listed.append({"type": "file", "path": path, "size": found[1], "oid": "0" * 40, "lfs": lfs})
        at, size = int(self.query.get("cursor", ["0"])[0]), 4
        query = f"recursive={str(is_deep).lower()}&cursor={at + size}"
        more = f'<{self.server.url}{self.path.partition("?")[0]}?{query}>; rel="next"'
        self._json(listed[at : at + size], headers={"Link": more} if at + size < len(listed) else {})

    def _resolve(self, parts: list[str]) -> None:
        """``datasets/USER/NAME/resolve/REVISION/PATH``; large files lie elsewhere."""
        repo, path = self._repo("/".join(parts[1:3])), "/".join(parts[5:])
        if repo is None:
            return
        files = repo.versions.get(parts[4], repo.files)
        if path not in files:
            self._json({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        found = files[path]
        data = self.server.content(found)
        digest = hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": repo.sha, "ETag": f'"{digest}"'}
        if isinstance(found, tuple):
            headers |= {"X-Linked-Size": str(found[1]), "X-Linked-ETag": f'"{digest}"'}
            self.answer(302, b"", {**headers, "Location": f"{self.server.url}/cdn/{found[0]}"})
        else:
            self.answer(200, data, headers)

    def _cdn(self, parts: list[str]) -> None:
        self.answer(200, self.server.objects[parts[1]], {"ETag": f'"{parts[1]}"'})

    # --- writing ------------------------------------------------------------------------------------------------------

    def _create(self, _: list[str]) -> None:
        asked = json.loads(self.body)
        name = f"{asked['organization']}/{asked['name']}"
        assert asked["type"] == "dataset"
        if name in self.server.repos:
            url = f"{self.server.url}/datasets/{name}"
            self._json({"error": "You already created this dataset repo", "url": url}, 409)
            return
        private = asked.get("visibility") == "private" or asked.get("private") is True
        self.server.repos[name] = Repo(private, {".gitattributes": b"*.gz filter=lfs\n"})
        self._json({"url": f"{self.server.url}/datasets/{name}", "name": name})

    def _yaml(self, _: list[str]) -> None:
        self._json({"errors": [], "warnings": []})

    def _preupload(self, parts: list[str]) -> None:
        if self._repo("/".join(parts[2:4])) is None:
            return
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
            }
            for file in json.loads(self.body)["files"]
        ]
        self._json({"files": files})

    def _batch(self, _: list[str]) -> None:
        hub, objects = self.server, []
        for each in json.loads(self.body)["objects"]:
            oid, size = each["oid"], each["size"]
            found: dict[str, Any] = {"oid": oid, "size": size}
            if oid not in hub.objects:
                upload: dict[str, Any] = {"href": f"{hub.url}/put/{oid}?X-Amz-Signature=secret"}
                if hub.in_pieces:
                    count = -(-size // PIECE)
                    pieces = {str(i + 1): f"{hub.url}/put/{oid}/{i + 1}?X-Amz-Signature=secret" for i in range(count)}
                    upload = {"href": f"{hub.url}/complete/{oid}", "header": {**pieces, "chunk_size": str(PIECE)}}
                verify = {"href": f"{hub.url}/verify/{oid}"}
                found["actions"] = {"upload": upload, "verify": verify}
            objects.append(found)
        self._json({"objects": objects, "transfer": "multipart" if hub.in_pieces else "basic"})

    def _put(self, parts: list[str]) -> None:
        hub, oid = self.server, parts[1]
        hub.sent["/".join(parts[1:])] += len(self.body)
        if len(parts) > 2:
            hub.pieces[oid][int(parts[2])] = self.body
        else:
            assert hashlib.sha256(self.body).hexdigest() == oid
            hub.objects[oid] = self.body
        self.answer(200, b"", {"ETag": '"x"'})

    def _complete(self, parts: list[str]) -> None:
        pieces = self.server.pieces[parts[1]]
        data = b"".join(pieces[number] for number in sorted(pieces))
        assert hashlib.sha256(data).hexdigest() == parts[1]
        self.server.objects[parts[1]] = data
        self._json({})

    def _verify(self, parts: list[str]) -> None:
        self._json({}, 200 if parts[1] in self.server.objects else 404)

    def _commit(self, parts: list[str]) -> None:
        repo = self._repo("/".join(parts[2:4]))
        if repo is None:
            return
        lines = [json.loads(line) for line in self.body.splitlines() if line]
        header = lines[0]["value"]
        if header.get("parentCommit", repo.sha) != repo.sha:
            self._json({"error": "A commit has happened since"}, 412)
            return
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "deletedFile":
                del repo.files[value["path"]]
            elif line["key"] == "file":
                repo.files[value["path"]] = base64.b64decode(value["content"])
            else:
                assert value["oid"] in self.server.objects
                repo.files[value["path"]] = value["oid"], value["size"]
        repo.commits.append(header)
        url = f"{self.server.url}/datasets/{'/'.join(parts[2:4])}/commit/{repo.sha}"
        self._json({"success": True, "commitOid": repo.sha, "commitUrl": url, "hookOutput": ""})

    def _json(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.answer_json(status, body, headers)

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        if getattr(self, "lost", False):
            self.close_connection = True
            return
        super().answer(status, data, headers)


def serving() -> AbstractContextManager[Hub]:
    """Return what yields a Hub that runs, and ends it."""
    return servers.serving(Hub())
