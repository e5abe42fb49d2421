"""The working folder of the tests of the pipeline, and the server of S3."""

from tests.pipeline.conftest import project, small
from tests.storage.conftest import bucket, seaweed

__all__ = ["bucket", "project", "seaweed", "small"]
