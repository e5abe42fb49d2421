"""The small data set, tagged."""

import pytest

from tests.pipeline.conftest import Project, by_hand, project, small

__all__ = ["Project", "by_hand", "project", "small"]


@pytest.fixture
def root(small: Project) -> str:
    """The folder of the small data set."""
    return str(small.data)
