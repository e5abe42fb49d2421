"""Records on S3."""

from tests.storage.conftest import bucket as bucket, seaweed as seaweed
