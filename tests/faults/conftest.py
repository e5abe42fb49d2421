"""What cells are played on, one for all tests."""

from collections.abc import Iterator

import pytest

from tests.faults.cells import Bench
from tests.faults.driver import bench as benched
from tests.storage.conftest import seaweed as seaweed
from tests.storage.servers import Seaweed


@pytest.fixture(scope="session")
def folder_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """For faults of files."""
    with benched(tmp_path_factory.mktemp("faults"), None) as found:
        yield found


@pytest.fixture(scope="session")
def bucket_bench(seaweed: Seaweed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """For faults of a bucket."""
    with benched(tmp_path_factory.mktemp("faults"), seaweed) as found:
        yield found
