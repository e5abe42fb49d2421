"""Files and folders that options name: digests, the file of a language, lists."""

import gzip
import hashlib
from pathlib import Path

import pytest

from toolkit.errors import ConfigError, DataError
from toolkit.storage import models


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_digest_of_a_folder_is_that_of_its_files_and_their_names(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "two").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(b"x")
    listed = f"{sha256(b'1')}  a\n{sha256(b'2')}  b/c/two\n"
    assert models.digest(str(tmp_path)) == models.digest(f"{tmp_path}/") == sha256(listed.encode())
    assert models.digest(str(tmp_path / "a")) == sha256(b"1")
    before = models.digest(str(tmp_path))
    (tmp_path / "a").rename(tmp_path / "d")
    assert models.digest(str(tmp_path)) != before
    with pytest.raises(ConfigError, match="expected a model file, got a folder"):
        models.resolve(str(tmp_path))


def test_the_file_of_a_language(tmp_path: Path) -> None:
    for name in ("en", "en.txt", "de.txt", "secret.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "fr").write_text("x")
    (tmp_path / "ja").mkdir()

    def found(language: str | None, folder: str = "") -> str | None:
        path = models.for_language(str(tmp_path / folder), language, ("", ".txt"))
        return path and str(Path(path).relative_to(tmp_path))

    assert [found(language) for language in ("en", "de", "fr", "ja", "", None)] == ["en", "de.txt", *[None] * 4]
    assert [found(language, "lists") for language in ("fr", "../secret", "..", ".", "/etc/passwd")] == [
        "lists/fr",
        *[None] * 4,
    ]
    assert found(None, "en.txt") == found("de", "en.txt") == "en.txt"
    with pytest.raises(ConfigError, match="expected a model file, got nothing"):
        found("en", "none")


def test_lists(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes("\ufeff# comment\r\n one  word \r\n\n#no\nzwei # drei\u2028x".encode())
    assert models.entries(str(path)) == ["one  word", "zwei # drei\u2028x"]
    packed = tmp_path / "list.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert models.entries(str(packed)) == models.entries(str(path))
    path.write_bytes(b"a\nb\xff\n")
    with pytest.raises(DataError, match=r"list:2: expected UTF-8, got: "):
        models.read_list(str(path))
