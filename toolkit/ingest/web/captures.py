"""Answers of servers in WARC files of a crawl: robots.txt and other files about sites, and their dates."""

import os
from collections.abc import Iterator

from toolkit.errors import ConfigError
from toolkit.ingest.reader import Capture, Input
from toolkit.ingest.web.http import TooLarge, UnknownCoding, decoded_body, parse_response
from toolkit.ingest.web.records import sound_records
from toolkit.storage.paths import is_folder, join, list_files

_WARC = (".warc", ".warc.gz", ".warc.zst")
_MOST = 16 << 20


def captures(path: str, limit: int) -> Iterator[Capture]:
    """Yield the HTTP responses of a WARC file, or of those in a folder, by name.

    Args:
        path: File or folder.
        limit: Bytes of a body; the rest is cut off.

    Raises:
        ConfigError: If a folder has no WARC file.
        DataError: If a record is bad.
    """
    files = [path]
    if is_folder(path):
        files = [join(path, name) for name in list_files(path) if name.endswith(_WARC)]
        if not files:
            raise ConfigError(f"{path}: expected WARC files ({', '.join(_WARC)}) in the folder, got none")
    for file in files:
        for record in sound_records(Input(os.fspath(file), None, _MOST, None), large=True):
            url = record.fields.get("warc-target-uri", "").strip("<>")
            answer = parse_response(record.block) if record.type == "response" and record.block and url else None
            if answer is None:
                continue
            try:
                body, _ = decoded_body(answer, _MOST)
            except (TooLarge, UnknownCoding):
                body = b""
            yield Capture(url, record.date or "", answer.status, answer.headers, body[:limit])
