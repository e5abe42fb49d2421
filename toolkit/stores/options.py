"""How remote files are reached: the section ``storage:`` of a configuration."""

import os
from typing import Annotated, Literal

import msgspec

_VARIABLE = "TOOLKIT_STORAGE"
"""Carries the options to processes that work for this one, wherever they run."""


class StorageOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is not in the usual environment variables and files of AWS, or should differ from it."""

    endpoint_url: Annotated[str | None, msgspec.Meta(description="of an S3 server that is not Amazon's")] = None
    region: Annotated[str | None, msgspec.Meta(description="of the buckets")] = None
    profile: Annotated[str | None, msgspec.Meta(description="section of the AWS credentials file")] = None
    addressing_style: Annotated[
        Literal["auto", "path", "virtual"], msgspec.Meta(description="where a URL has the bucket's name")
    ] = "auto"
    request_payer: Annotated[bool, msgspec.Meta(description="pay for requests to buckets that ask for it")] = False
    anonymous: Annotated[bool, msgspec.Meta(description="no credentials, for public buckets")] = False


def set_options(options: StorageOptions) -> None:
    """For this process and for those that it begins."""
    if options != StorageOptions():
        os.environ[_VARIABLE] = msgspec.json.encode(options).decode()


def options() -> StorageOptions:
    """Those of this process."""
    return msgspec.json.decode(os.environ.get(_VARIABLE, "{}"), type=StorageOptions)
