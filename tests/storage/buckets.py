"""Buckets of each store, by the store's own client: what tests write, read and list there without the toolkit."""

from typing import Any, Protocol

from tests.storage.servers import ACCESS, CLOUD_BUCKET, SECRET


class Bucket(Protocol):
    """A bucket as tests look at it: by the client of its store, not by the toolkit."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""

    def get(self, key: str) -> bytes:
        """Return the content of an object."""

    def delete(self, key: str) -> None:
        """Delete an object."""

    def listed(self, prefix: str) -> dict[str, str]:
        """Return what tells versions of objects apart, by key."""


class S3Bucket:
    """A bucket of S3."""

    def __init__(self, url: str) -> None:
        import boto3

        keys = {"aws_access_key_id": ACCESS, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
        self._client: Any = boto3.client("s3", endpoint_url=url, **keys)
        self._client.create_bucket(Bucket=CLOUD_BUCKET)

    def put(self, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=CLOUD_BUCKET, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        body: bytes = self._client.get_object(Bucket=CLOUD_BUCKET, Key=key)["Body"].read()
        return body

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=CLOUD_BUCKET, Key=key)

    def listed(self, prefix: str) -> dict[str, str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=CLOUD_BUCKET, Prefix=prefix)
        entries = (entry for page in pages for entry in page.get("Contents", ()))
        return {entry["Key"]: f"{entry['ETag']} {entry['LastModified']}" for entry in entries}


class GsBucket:
    """A bucket of Google Cloud Storage."""

    def __init__(self, url: str) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        client: Any = storage.Client("p", AnonymousCredentials(), client_options={"api_endpoint": url})
        self._bucket = client.bucket(CLOUD_BUCKET)

    def put(self, key: str, data: bytes) -> None:
        self._bucket.blob(key).upload_from_string(data, "application/octet-stream")

    def get(self, key: str) -> bytes:
        body: bytes = self._bucket.blob(key).download_as_bytes()
        return body

    def delete(self, key: str) -> None:
        self._bucket.blob(key).delete()

    def listed(self, prefix: str) -> dict[str, str]:
        return {blob.name: str(blob.generation) for blob in self._bucket.list_blobs(prefix=prefix)}


class AzContainer:
    """A container of Azure."""

    def __init__(self, connection: str) -> None:
        from azure.storage.blob import ContainerClient

        self._client: Any = ContainerClient.from_connection_string(connection, CLOUD_BUCKET)

    def put(self, key: str, data: bytes) -> None:
        self._client.upload_blob(key, data, overwrite=True)

    def get(self, key: str) -> bytes:
        body: bytes = self._client.download_blob(key).readall()
        return body

    def delete(self, key: str) -> None:
        self._client.delete_blob(key)

    def listed(self, prefix: str) -> dict[str, str]:
        return {blob.name: blob.etag for blob in self._client.list_blobs(prefix)}
