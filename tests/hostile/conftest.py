"""The working folder of the tests of the pipeline."""

from tests.pipeline.conftest import project, small

__all__ = ["project", "small"]
