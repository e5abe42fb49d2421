"""Records on S3."""

from tests.storage.conftest import bucket as bucket
from tests.storage.conftest import seaweed as seaweed
