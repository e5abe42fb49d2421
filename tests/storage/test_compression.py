"""Every compression: whole to the end, or an error that says where it broke; never short, never by a wrong name."""

import bz2
import functools
import gzip
import lzma
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from tests.conftest import Run
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.session import current
from toolkit.storage import store_of
from toolkit.storage.compression import compress_zstd, zstd
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import expand, fixed_part, list_files, remove_stale_temporaries
from toolkit.storage.reading import Decompressed, Lines
from toolkit.storage.stores.local import temporary_name
from toolkit.storage.stores.local.scratch import machine
from toolkit.storage_options import Size, StorageOptions

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 6, mtime=0),
    "zst": compress_zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
PLACES = r"at byte [\d,]+ \([\d,]+ uncompressed\)"


def read(path: Path, size: int = -1) -> bytes:
    with Decompressed(str(path)) as stream:
        return stream.read() if size < 0 else b"".join(iter(lambda: stream.read(size), b""))


def text(seed: int, size: int) -> bytes:
    """Half of it compresses well."""
    chosen = random.Random(seed)
    return b"".join(
        chosen.randbytes(20) + b"a line of words\n" * chosen.randrange(9) for _ in range(max(1, size // 100))
    )


PARTS = [text(1, 900), b"", text(2, 40), text(3, 300_000), text(4, 700)]


@pytest.mark.parametrize("size", [-1, 1, 1000, 1 << 20])
@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_that_follow_each_other_are_one(suffix: str, size: int, tmp_path: Path) -> None:
    parts = PARTS if size != 1 else [PARTS[0], *PARTS[1:3]]
    data = b"".join(COMPRESS[suffix](part) for part in parts)
    for name in (f"a.jsonl.{suffix}", "without_a_suffix", "model.bin"):
        path = tmp_path / name
        path.write_bytes(data)
        assert read(path, size) == b"".join(parts)


@functools.cache
def compressed(suffix: str) -> list[bytes]:
    return [COMPRESS[suffix](part) for part in PARTS]


@pytest.mark.slow
@settings(max_examples=80)
@given(suffix=st.sampled_from(list(COMPRESS)), data=st.data())
def test_a_file_cut_anywhere_is_an_error_unless_between_two_that_follow_each_other(
    suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stored = compressed(suffix)
    ends = {sum(map(len, stored[:n])): n for n in range(1, len(stored) + 1)}
    near = [at + by for at in ends for by in range(-12, 13) if 0 < at + by < max(ends)]
    cut = data.draw(st.sampled_from(near) | st.integers(0, max(ends) - 1))
    path = tmp_path_factory.mktemp("cut") / f"a.{suffix}"
    path.write_bytes(b"".join(stored)[:cut])
    if cut in ends:  # which nobody can see
        assert read(path) == b"".join(PARTS[: ends[cut]])
        return
    with pytest.raises(DataError, match=rf"a\.{suffix}: expected .* data") as raised:
        read(path, data.draw(st.sampled_from([1 << 20, 50])))
    if cut > 12:
        assert f"got the end of the file at byte {cut:,} (" in str(raised.value)


@given(suffix=st.sampled_from(list(COMPRESS)), seed=st.integers(0, 1 << 30))
@example(suffix="bz2", seed=0)
def test_a_file_with_a_changed_byte_is_an_error_or_the_same(
    suffix: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chosen = random.Random(seed)
    parts = [PARTS[0], PARTS[4]]
    stored = bytearray(b"".join(COMPRESS[suffix](part) for part in parts))
    stored[chosen.randrange(len(stored))] ^= 1 << chosen.randrange(8)
    path = tmp_path_factory.mktemp("flip") / f"a.{suffix}"
    path.write_bytes(stored)
    try:
        found = read(path)
    except DataError as error:
        assert str(error).startswith(f"{path}: expected ")  # noqa: PT017
    else:
        assert found == b"".join(parts), "a header has bits that mean nothing"


@pytest.mark.parametrize("behind", [b"x", b"garbage behind it", b"\n", b"BZh", b"\xfd7zX", b"\x1f"])
@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_follows_and_is_not_compressed_is_an_error(suffix: str, behind: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(COMPRESS[suffix](PARTS[0]) + behind)
    with pytest.raises(DataError, match=PLACES):
        read(path)


def test_padding_is_what_the_format_allows(tmp_path: Path) -> None:
    for suffix, zeros, allowed in [("gz", 7, True), ("xz", 8, True), ("xz", 6, False), ("bz2", 4, False)]:
        path = tmp_path / f"{zeros}.{suffix}"
        one = COMPRESS[suffix](PARTS[0])
        for data, expected in ((one + bytes(zeros), 1), (one + bytes(zeros) + one, 2)):
            path.write_bytes(data)
            if allowed:
                assert read(path) == PARTS[0] * expected
            else:
                with pytest.raises(DataError, match=PLACES):
                    read(path)


def test_zstd_frames_to_be_skipped_are_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    path = tmp_path / "a.zst"
    path.write_bytes(skipped + compress_zstd(b"one") + skipped + compress_zstd(b"two") + skipped)
    assert read(path) == b"onetwo"


@pytest.mark.parametrize("said", ["gz", "zst", "zstd", "bz2", "xz", "jsonl", "txt", "warc", "wet", "csv", "tsv"])
def test_a_name_that_lies_is_an_error_that_says_what_it_is(said: str, tmp_path: Path) -> None:
    path, is_compression = tmp_path / f"a.{said}", said in ("gz", "zst", "zstd", "bz2", "xz")
    names = {"gz": "gzip", "zst": "zstd", "zstd": "zstd", "plain": """data that begins with b'{"a"'"""}
    expected = names.get(said, said) if is_compression else "plain"
    for found in ("plain", *COMPRESS):
        path.write_bytes(b'{"a": 1}\n' if found == "plain" else COMPRESS[found](b"a\n"))
        if said.removesuffix("d") == found or (found == "plain" and not is_compression):
            assert read(path)
            continue
        with pytest.raises(DataError, match=f"expected {expected} data by the suffix, got {names.get(found, found)}"):
            read(path)


@pytest.mark.slow
def test_the_line_of_a_cut_file_is_named_too(tmp_path: Path) -> None:
    rows = [b"row %d" % i for i in range(100_000)]
    for suffix, compress in COMPRESS.items():
        path = tmp_path / f"a.{suffix}"
        stored = compress(b"\n".join(rows))
        path.write_bytes(stored[:-9])
        got: list[bytes] = []
        where = f"got the end of the file at byte {len(stored) - 9:,}"
        with pytest.raises(DataError, match=where) as raised, Lines(str(path), 1000) as lines:
            got.extend(lines)
        assert got == rows[: len(got)]
        assert raised.value.line == len(got) + 1


def of_window(log: int, data: bytes) -> bytes:
    """Return a frame of zstd that declares a window of 2 ** log bytes, as ``zstd --long`` does."""
    module = zstd()
    small = module.ZstdCompressor(options={module.CompressionParameter.window_log: 20})
    frame = bytearray(small.compress(data) + small.flush())
    assert frame[4] & 0x20 == 0  # a window follows
    frame[5] = (log - 10) << 3
    return bytes(frame)


@pytest.fixture
def options() -> Callable[..., None]:
    """What sets options of the storage, until the test ends."""

    def change(**changed: Any) -> None:
        current().options = StorageOptions(**changed)

    return change


def test_windows_of_two_gibibytes_are_read_unless_the_option_says_less(
    tmp_path: Path, options: Callable[..., None]
) -> None:
    path = tmp_path / "RC.jsonl.zst"
    path.write_bytes(of_window(20, PARTS[0]) + of_window(31, PARTS[3]))  # also in a frame that is not the first
    assert read(path) == PARTS[0] + PARTS[3]
    options(max_window=Size.parse("1 GiB"))
    with pytest.raises(DataError, match=r"at most 1,073,741,824 bytes, got a larger one.*`storage\.max_window`"):
        read(path)
    path.write_bytes(of_window(30, PARTS[0]))
    assert read(path) == PARTS[0]
    other = tmp_path / "a.jsonl.xz"
    other.write_bytes(lzma.compress(PARTS[0], preset=9))  # a dictionary of 64 MiB
    assert read(other) == PARTS[0]
    options(max_window=Size.parse("32 MiB"))
    for each in (path, other):
        with pytest.raises(DataError, match=r"at most 33,554,432 bytes.*`storage\.max_window`"):
            read(each)
    with pytest.raises(ValueError, match="at most 2 GiB"):
        options(max_window=Size.parse("3 GiB"))


# Where things are: globs, listing, the places of a dataset, temporary files of the dead.


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


# --- globs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matches", "does_not_match"),
    [
        ("a.gz", "a.gz", "aXgz  ba.gz  a.gz2  x/a.gz"),
        ("*.gz", "a.gz  .gz", "a.gzip  x/a.gz"),
        ("x/*/a", "x/y/a", "x/a  x/y/z/a"),
        ("?.gz", "a.gz  é.gz", "ab.gz  .gz  /.gz"),
        ("**", "a  x/a  x/y/a", ""),
        ("**/a", "a  x/a  x/y/a", "ba  x/ba  a/b"),
        ("x/**", "x/a  x/y/a", "xa  y/x/a"),
        ("x/**/a", "x/a  x/y/a  x/y/z/a", "xa  x/ya  y/x/a"),
        ("**/*.gz", "a.gz  x/y/a.gz", "a.zst"),
        ("[ab]", "a  b", "c  ab  /"),
        ("[a-c]1", "a1  c1", "d1"),
        ("[!a]", "b  é", "a  /"),
        ("[+--]1", "+1  ,1  -1", ".1  *1"),
        ("[--/]1", "-1  .1", ",1  /1"),
        ("[&&a||~~[]1", "&1  a1  |1  ~1  [1", "b1"),
        ("x[!a]y", "xby", "xay  x/y"),
        ("{a,bc}.gz", "a.gz  bc.gz", "b.gz  a,bc.gz"),
        ("{x,y/z}/a", "x/a  y/z/a", "y/a"),
        ("{a,b{c,d}}", "a  bc  bd", "b  ac"),
        ("{,x}a", "a  xa", "x"),
        ("a,b", "a,b", "a  b"),
        ("a}b{", "a}b{", "ab"),
        ("a+(b)|c$.^", "a+(b)|c$.^", "aab  c"),
    ],
)
def test_globs_match(pattern: str, matches: str, does_not_match: str) -> None:
    regex = glob_regex(pattern)
    assert [name for name in matches.split("  ") if not regex.match(name)] == []
    assert [name for name in does_not_match.split("  ") if regex.match(name) and name] == []


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [
        ("a/b/*/c*.gz", "a/b"),
        ("a/b/c.gz", "a/b"),
        ("*.gz", ""),
        ("a.gz", ""),
        ("/data/*.gz", "/data"),
        ("/*.gz", "/"),
        ("a/{b,c}/d", "a"),
        ("a/b?/d", "a"),
        ("a/[bc]/d", "a"),
    ],
)
def test_the_fixed_part_is_the_folder_of_all_matches(pattern: str, folder: str) -> None:
    assert fixed_part(pattern) == folder


def test_expand_gives_sorted_files_with_their_path_below_the_fixed_part(tmp_path: Path) -> None:
    make(tmp_path, "in/b.gz", "in/a.gz", "in/x/c.gz", "in/B.gz", "in/d.txt", "in/.hidden/e.gz", "in/.toolkit/f.gz")
    found = expand(f"{tmp_path}/in/**/*.gz")
    assert [below for _, below in found] == ["B.gz", "a.gz", "b.gz", "x/c.gz"]
    assert [path for path, _ in found] == [f"{tmp_path}/in/{below}" for _, below in found]
    assert expand(f"{tmp_path}/in/a.gz") == [(f"{tmp_path}/in/a.gz", "a.gz")]
    assert [below for _, below in expand(f"{tmp_path}/in/.hidden/*")] == ["e.gz"]
    assert [below for _, below in expand(f"{tmp_path}/*/.hidden/*")] == ["in/.hidden/e.gz"]


def test_expand_works_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.gz", "x/b.gz")
    monkeypatch.chdir(tmp_path)
    assert expand("*.gz") == [("a.gz", "a.gz")]
    assert expand("**/*.gz") == [("a.gz", "a.gz"), ("x/b.gz", "x/b.gz")]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*.zst", "at least one file, got no match"),
        ("nothing.gz", "expected a file, got nothing there"),
        ("x", r"got a folder; write .*/x/\*\*"),
    ],
)
def test_expand_says_what_is_not_there(pattern: str, message: str, tmp_path: Path) -> None:
    make(tmp_path, "x/a.gz")
    with pytest.raises(ConfigError, match=message):
        expand(f"{tmp_path}/{pattern}")


# --- a dataset --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "documents", "attributes", "expected"),
    [
        ("data/x", None, None, ("data/x/documents", "data/x/attributes", "data/x/.toolkit")),
        ("data/x/", None, None, ("data/x/documents", "data/x/attributes", "data/x/.toolkit")),
        ("x", "/public/docs", None, ("/public/docs", "x/attributes", "x/.toolkit")),
        (None, "/public/docs", "mine/attributes", ("/public/docs", "mine/attributes", "mine/.toolkit")),
        (None, "/public/docs", "attributes", ("/public/docs", "attributes", ".toolkit")),
        (None, "/public/docs", "mine/tags/", ("/public/docs", "mine/tags", "mine/tags/.toolkit")),
        ("x", None, "elsewhere/tags", ("x/documents", "elsewhere/tags", "elsewhere/tags/.toolkit")),
    ],
)
def test_bookkeeping_lies_beside_a_folder_called_attributes_else_in_it(
    dataset: str | None, documents: str | None, attributes: str | None, expected: tuple[str, str, str]
) -> None:
    found = open_dataset(dataset, documents, attributes)
    assert (found.documents, found.attributes, found.bookkeeping) == expected
    assert found.shard_path("a/b.jsonl.gz") == f"{expected[0]}/a/b.jsonl.gz"
    assert found.attribute_path("s-0", "a/b.jsonl.gz") == f"{expected[1]}/s-0/a/b.jsonl.gz"


@pytest.mark.parametrize(
    ("dataset", "documents", "attributes", "message"),
    [
        (None, None, None, "`dataset: ROOT` or `documents: ROOT`"),
        (None, "docs", None, "`attributes: ROOT` beside"),
        ("x", {"path": "docs", "exlude": []}, None, "{path, include, exclude}"),
        ("x", {"path": 3}, None, "{path, include, exclude}"),
        ("x", {"include": 3}, None, r"documents\.include: expected a list of globs"),
    ],
)
def test_a_dataset_without_places_is_refused(
    dataset: str | None, documents: str | dict[str, object] | None, attributes: str | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        open_dataset(dataset, documents, attributes)


def test_links_to_a_folder_that_they_are_in_are_not_followed_and_others_are(tmp_path: Path) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root" / "a" / "x").touch()
    (tmp_path / "elsewhere" / "y").touch()
    (tmp_path / "root" / "a" / "back").symlink_to("..")
    (tmp_path / "root" / "a" / "there").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "home").symlink_to(tmp_path / "root")
    assert list(list_files(str(tmp_path / "root"))) == ["a/there/y", "a/x"]


def test_a_name_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    try:
        Path(os.fsdecode(os.fsencode(tmp_path / "documents") + b"/caf\xe9.jsonl")).touch()
    except OSError:
        pytest.skip("this file system knows UTF-8 only")
    with pytest.raises(ConfigError, match=r"expected file names in UTF-8, got b'caf\\xe9.jsonl'; rename"):
        expand(f"{tmp_path}/documents/*")
    with pytest.raises(ConfigError, match="expected file names in UTF-8"):
        open_dataset(str(tmp_path), None, None).shards()


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> Any:  # root may read everything
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(ToolkitError, match="closed: expected a folder that can be read, got: Permission denied"):
        list(list_files(str(tmp_path)))
    assert list(list_files(str(tmp_path / "missing"))) == []


def test_documents_may_be_a_glob_or_have_globs(tmp_path: Path) -> None:
    make(tmp_path, "d/en/a.jsonl.gz", "d/en/b.jsonl.gz", "d/fr/a.jsonl.gz", "d/README.md")
    by_glob = open_dataset(None, f"{tmp_path}/d/*/a.jsonl.gz", "attributes")
    assert by_glob.documents == f"{tmp_path}/d"
    assert by_glob.shards() == ["en/a.jsonl.gz", "fr/a.jsonl.gz"]
    options: dict[str, object] = {"path": f"{tmp_path}/d", "include": "en/*", "exclude": ["**/b.*"]}
    assert open_dataset(None, options, "attributes").shards() == ["en/a.jsonl.gz"]


def test_shards_are_all_files_with_known_suffixes_sorted(tmp_path: Path) -> None:
    shards = ["a.json", "a.jsonl", "b/a.jsonl.gz", "b/c.json.gz", "d.jsonl.zst"]
    make(tmp_path, *(f"documents/{name}" for name in reversed(shards)))
    make(tmp_path, "documents/.toolkit/x.bin", "documents/b/.a.jsonl.gz.host.1.0.tmp")
    assert open_dataset(str(tmp_path), None, None).shards() == shards


@pytest.mark.parametrize("foreign", ["README.md", "b/.DS_Store", "a.jsonl.bz2", "a.parquet", "x.jsonl.gz.part"])
def test_a_foreign_file_among_documents_is_named_unless_a_glob_excludes_it(foreign: str, tmp_path: Path) -> None:
    make(tmp_path, "documents/a.jsonl.gz", f"documents/{foreign}")
    root = f"{tmp_path}/documents"
    with pytest.raises(DataError) as raised:
        open_dataset(str(tmp_path), None, None).shards()
    assert raised.value.path == f"{root}/{foreign}"
    assert f"exclude: [{foreign!r}]" in str(raised.value)
    assert open_dataset(str(tmp_path), {"path": root, "exclude": [foreign]}, None).shards() == ["a.jsonl.gz"]
    assert open_dataset(str(tmp_path), {"path": root, "include": ["**/*.jsonl.gz"]}, None).shards() == ["a.jsonl.gz"]


def test_no_documents_is_an_error_that_says_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected documents, got none; run `toolkit ingest` first"):
        open_dataset(str(tmp_path), None, None).shards()
    make(tmp_path, "documents/a.jsonl")
    with pytest.raises(ConfigError, match="no shard that the globs admit"):
        Dataset(f"{tmp_path}/documents", "attributes", exclude=("*",)).shards()


def test_sets_are_the_visible_folders_of_the_attributes(tmp_path: Path) -> None:
    make(tmp_path, "attributes/b-0/x.jsonl.gz", "attributes/a-0/x.jsonl.gz", "attributes/.toolkit/x", "attributes/file")
    assert open_dataset(str(tmp_path), None, None).sets() == ["a-0", "b-0"]
    assert open_dataset(f"{tmp_path}/nothing", None, None).sets() == []


# --- temporary files --------------------------------------------------------------------------------------------------


def test_a_signal_that_comes_before_a_temporary_has_its_name_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.storage.stores.local.temporary_name", interrupted)
    with pytest.raises(KeyboardInterrupt):  # and no error of the finalizer, which would be one of this test
        store_of("").writing(str(tmp_path / "a"))
    assert os.listdir(tmp_path) == []


def test_only_temporaries_of_dead_processes_of_this_machine_are_deleted(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    stale = temporary_name("x/.toolkit/a.jsonl.gz").replace(f".{os.getpid()}-", f".{int(dead.stdout)}-")
    other_machine = stale.replace(machine(), "elsewhere")
    kept = [temporary_name("x/a.jsonl.gz"), other_machine, "x/.mine.tmp", "x/a.jsonl.gz", "x/.a.b.c.d.tmp"]
    make(tmp_path, stale, *kept)
    assert remove_stale_temporaries(str(tmp_path)) == 1
    assert sorted(list_files(str(tmp_path), hidden=True)) == sorted(kept)
    assert list(list_files(str(tmp_path))) == ["x/a.jsonl.gz"], "temporary files are invisible to globs"


def test_clean_deletes_what_processes_that_are_gone_have_left(tmp_path: Path, run: Run) -> None:
    stale = tmp_path / "data" / f".x.{machine()}.999999-1.0.tmp"
    elsewhere = tmp_path / "data" / f".x.not-{machine()}.1-1.0.tmp"
    living = Path(temporary_name(str(tmp_path / "data" / "y")))
    for path in (stale, elsewhere, living):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    assert str(stale) in run("clean", tmp_path, "--dry-run").out
    assert stale.exists()
    run("clean", tmp_path).shows("2 files and uploads deleted")
    assert not stale.exists()
    assert not elsewhere.exists(), "the nodes of a cluster that died do not come back to do it"
    assert living.exists()
