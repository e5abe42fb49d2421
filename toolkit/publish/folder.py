"""Publication of an output: its files, the checks before it, and the folder that it is published in.

output ──files of its manifest, descriptions──> checks ──> copies, each checked ──> what only the last one had goes

Records (``.toolkit``) and dropped documents are never among the files. The card comes last: it says that all is there.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence

from toolkit.describe import card, card_marks, croissant
from toolkit.errors import ConfigError
from toolkit.inspect import targets
from toolkit.mix import publication
from toolkit.mix.settings import REJECTED
from toolkit.publish.release import ReleaseFile, listing_of
from toolkit.storage import store_of
from toolkit.storage.addresses import CREDENTIALS, has_secret
from toolkit.storage.paths import (
    exists,
    is_folder,
    is_hidden,
    join,
    list_files,
    no_folder,
    remove,
    remove_empty_folders,
    size_of,
)
from toolkit.storage.reading import stored_digest

_FORMS = {
    "a key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a token of the Hugging Face Hub": r"\bhf_[A-Za-z0-9]{30,}\b",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})",
    "a token of GitLab": r"\bglpat-[\w-]{20,}",
    "a key of a language model's server": r"\bsk-[\w-]{20,}",
    "a token of Slack": r"\bxox[abeoprs]-[\w-]{10,}",
    "a key of Google": r"\bAIza[\w-]{35}\b",
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "a signed token (JWT)": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
}
_PATTERNS = {kind: re.compile(form) for kind, form in _FORMS.items()}
_ADDRESS = re.compile(r"""\b[a-z][a-z0-9+.-]*://[^\s"'<>)\]]+""", re.IGNORECASE)
_HIDDEN = "…"
"""Stands in an address of ours where it had a secret."""

_ENVIRONMENT = (*CREDENTIALS, "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY")
_LEAST = 8
"""Characters of a credential in the environment; fewer may be any word."""


def credentials_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line (from 1) and the kind of each credential. The credential itself is never given."""
    here = [(name, os.environ.get(name, "")) for name in _ENVIRONMENT]
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, kind) for kind, pattern in _PATTERNS.items() if pattern.search(line))
        yield from ((number, f"the value of {name}") for name, value in here if len(value) >= _LEAST and value in line)
        addresses = (match[0] for match in _ADDRESS.finditer(line) if _HIDDEN not in match[0])
        yield from ((number, "an address with a secret") for address in addresses if has_secret(address))


NEEDED = {card.NAME: "`toolkit card`", croissant.NAME: "`toolkit croissant`"}
"""Descriptions that a published output has, and what writes them."""


def files_of(output: str) -> list[ReleaseFile]:
    """Return the files to publish, in order: parts, checksums, descriptions, the card.

    Raises:
        ConfigError: if it is no finished output of a mix, or has not both descriptions, or another program's card.
    """
    manifest = publication.load_manifest(output)
    if manifest is None:
        raise ConfigError(f"{output}: expected the output of a mix, with its manifest, got none{no_folder(output)}")
    for name, command in NEEDED.items():
        if not exists(join(output, name)):
            got = "a folder: move it away, then" if is_folder(join(output, name)) else "no such file;"
            raise ConfigError(
                f"{join(output, name)}: expected this file, which is published with the output, got {got} run {command}"
            )
    if not card_marks.is_ours(_text(join(output, card.NAME))):
        raise ConfigError(
            f"{join(output, card.NAME)}: expected a card that `toolkit card` wrote, got another; run it, or move yours "
            "away first"
        )
    parts = [file for part in manifest.parts if part.label != REJECTED for file in part.files]
    files = [ReleaseFile(file.path, file.sha256, file.size, "the manifest") for file in parts]
    for path, text in manifest.files.items():
        if ".." not in path.split("/"):  # or it lists dropped documents, whose folder is apart from the output
            data = text.encode()
            files.append(ReleaseFile(path, hashlib.sha256(data).hexdigest(), len(data), "the manifest"))
    described = sorted(filter(targets.is_description, list_files(output)), key=_last)
    return [*files, *(_described(output, path) for path in described)]


def _last(path: str) -> tuple[int, str]:
    """Return the place of a description: the card behind all others."""
    return [croissant.NAME, card.NAME].index(path) + 1 if path in NEEDED else 0, path


def _described(output: str, path: str) -> ReleaseFile:
    whole = join(output, path)
    return ReleaseFile(path, stored_digest(whole, hashlib.sha256()), size_of(whole), "the output")


def _text(path: str) -> str:
    return store_of(path).read(path).decode(errors="replace")


def credentials(output: str, files: list[ReleaseFile]) -> Iterator[str]:
    """Yield a message for each credential in the descriptions of an output."""
    for file in files:
        if file.path in targets.DESCRIPTIONS and not file.path.endswith(".png"):
            path = join(output, file.path)
            for line, kind in credentials_in(_text(path)):
                yield f"{path}:{line}: expected no credentials, got {kind}; take it out, and write the file again"


def published_paths(place: str, coming: set[str], paths: Sequence[str], read: Callable[[str], bytes]) -> set[str]:
    """Return the paths of an earlier publication: checksum files, and what they list.

    Args:
        place: the address that others are published in, for messages.
        coming: paths that are published now.
        paths: all paths that there are.
        read: returns the bytes of one of them.

    Raises:
        ConfigError: if something else is there that would be taken for its data, or that it would replace.
    """
    published: set[str] = set()
    for path in filter(targets.is_checksum_file, paths):
        published |= {path, *listing_of(join(place, path), path, read(path))}
    if card.NAME in paths and not card_marks.is_ours(read(card.NAME).decode(errors="replace")):
        raise ConfigError(
            f"{join(place, card.NAME)}: expected none, or a card that `toolkit card` wrote, got another; move it away"
        )
    for path in paths:
        if path not in published | coming and not is_hidden(path) and targets.as_part(path):
            raise ConfigError(
                f"{join(place, path)}: expected only what was published here before, got a file that would be "
                "taken for its data; move it away, or choose another --to"
            )
    return published


class PublicationFolder:
    """The target folder of a publication; it may have an earlier one.

    Attributes:
        published: Paths that checksum files there list, and those files: what was published before.

    Raises:
        ConfigError: if something else is there that would be taken for its data, or that it would replace.
    """

    def __init__(self, folder: str, files: list[ReleaseFile]) -> None:
        self.folder = folder
        self._coming = {file.path for file in files}
        if publication.load_manifest(folder) is not None:
            raise ConfigError(f"--to: {folder}: expected a folder to publish in, got the output of a mix")
        self.published = published_paths(folder, self._coming, list(list_files(folder)), self._read)

    def _read(self, path: str) -> bytes:
        address = join(self.folder, path)
        return store_of(address).read(address)

    def may_replace(self, file: ReleaseFile) -> bool:
        """Return True if a file was published before, or describes the publication."""
        return file.path in self.published or targets.is_description(file.path)

    def clear(self) -> list[str]:
        """Delete files of the last publication alone; return their paths."""
        outdated = self.published - self._coming
        outdated |= {*targets.DESCRIPTIONS} - self._coming if self.published else set()  # a page that is no more
        old = sorted(path for path in outdated if exists(join(self.folder, path)))
        for path in old:
            remove(join(self.folder, path))
            remove_empty_folders(os.path.dirname(join(self.folder, path)), self.folder)
        return old
