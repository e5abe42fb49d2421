"""The inputs at a path of the configuration: a file, a glob, or a folder as other programs write them.

NAME/README.md            whose YAML header has `configs:` with `data_files:`, as the Hugging Face hub has them
NAME/dataset_dict.json    a folder for each split, written by `datasets.save_to_disk`
NAME/state.json           which names the files of one split, by the same function
NAME/                     else all files in it that are called as those of the format

Common Crawl by the name of a crawl: which files it has, by its own lists of them.

Source: https://commoncrawl.org/get-started: ``<base>/crawl-data/<crawl>/<format>.paths.gz`` has a line for each file,
its path below the base.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from toolkit.config.settings import parse
from toolkit.errors import ConfigError, DataError, NothingThere, did_you_mean, in_words
from toolkit.storage import Stat, store_of
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import exists, expand_listed, fault_of_name, is_folder, is_glob, join, strip_suffix
from toolkit.storage.reading import Lines

T = TypeVar("T")

ListedFile = tuple[str, str, Stat | None]
"""The path of an input, what names its shard, and what a listing says of it, if one does."""

_HEADER = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(\r?\n|\Z)", re.DOTALL)

_TRAIN = "train"
"""The split of data files that name none."""


class _File(msgspec.Struct):
    filename: str


class _State(msgspec.Struct, rename={"files": "_data_files", "indices": "_indices_data_files"}):
    files: list[_File]
    indices: list[_File] | None = None


class _Splits(msgspec.Struct):
    splits: list[str]


class _SplitFiles(msgspec.Struct):
    path: str | list[str]
    split: str = _TRAIN


class _Config(msgspec.Struct):
    config_name: str = "default"
    data_files: str | list[str | _SplitFiles] | None = None
    data_dir: str = ""
    default: bool = False


class _Card(msgspec.Struct):
    configs: list[_Config] = []


def is_listable(pattern: str) -> bool:
    """Return True if a path of the configuration is a folder."""
    return not is_glob(pattern) and store_of(pattern).can_list and is_folder(pattern)


def list_inputs(pattern: str, suffixes: Sequence[str]) -> Sequence[ListedFile]:
    """Return the inputs of a path: of a folder, the files in it whose names end in one of the suffixes.

    Raises:
        NothingThere: if there is none.
        ConfigError: if the path is a folder, and nothing says which of its files are meant.
    """
    if not suffixes or not is_listable(pattern):
        return expand_listed(pattern)
    files = expand_listed(join(pattern, "**"))
    results = [file for file in files if strip_suffix(file[1], list(COMPRESSIONS)).endswith(tuple(suffixes))]
    if not results:
        crawl_files = ", ".join(sorted(suffixes))
        example = f" among {len(files)}, such as {files[0][1]}" if files else ""
        raise NothingThere(f"{pattern}: expected files that end in {crawl_files}, got none{example}; give a glob")
    return results


def inputs_of_folder(
    pattern: str, suffixes: Sequence[str], config: str | None, split: str | None
) -> Sequence[ListedFile]:
    """Return the inputs of a folder by its own description; the arguments are those of the options.

    Raises:
        NothingThere: if there is none.
        ConfigError: if the path is no folder, or the folder has no such configuration, or no such split.
    """
    if not is_listable(pattern):
        option = "split" if config is None else "config"
        raise ConfigError(f"{pattern}: expected a folder with `{option}:`, got another path; write its folder")
    if configs := _configs(pattern):
        return _of_config(pattern, configs, config, split)
    if config is not None:
        raise ConfigError(
            f"{pattern}: expected a README.md whose header has `configs:`, for `config: {config}`, got none"
        )
    if exists(path := join(pattern, "dataset_dict.json")):
        names = _read(path, _Splits).splits
        inputs_of_folder = names if split is None else [_one_of(pattern, "split", split, names)]
        return [
            (path, join(name, relative), stat)
            for name in inputs_of_folder
            for path, relative, stat in _of_state(join(pattern, name))
        ]
    if exists(join(pattern, "state.json")):
        if split is not None:
            raise ConfigError(
                f"{pattern}: expected a folder of splits (dataset_dict.json) with `split:`, got one split"
            )
        return _of_state(pattern)
    results = list_inputs(pattern, suffixes)
    if split is None:
        return results
    of_split = re.compile(rf"(^|[-._ /]){re.escape(split)}([-._ /0-9]|$)")
    if not (matches := [item for item in results if of_split.search(item[1])]):
        raise NothingThere(
            f"{pattern}: expected files of the split {split!r}, got {results[0][1]} and others; give a glob"
        )
    return matches


def splits_of(folder: str) -> list[str]:
    """Return the splits of a folder written by `datasets.save_to_disk`; none if it has one without a name."""
    path = join(folder, "dataset_dict.json")
    return _read(path, _Splits).splits if exists(path) else []


def configs_of(folder: str) -> dict[str, list[str]]:
    """Return the configurations in a folder's README.md, with their splits."""
    return {
        config.config_name: list(dict.fromkeys(split for split, _ in _split_files(config)))
        for config in _configs(folder)
    }


# --- what folders say of themselves -----------------------------------------------------------------------------------


def _configs(folder: str) -> list[_Config]:
    """Return the configurations in the header of a README.md; none if it has none, or there is none."""
    path = join(folder, "README.md")
    if not exists(path):
        return []
    header = _HEADER.match(store_of(path).read(path).decode(errors="replace").removeprefix("\ufeff"))
    if header is None or "configs:" not in header[1]:
        return []
    try:
        return msgspec.convert(parse(header[1], path).value, _Card).configs
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{path}: expected `configs:` as the Hub has them, got: {in_words(str(error))}; give a glob"
        ) from None


def _of_config(folder: str, configs: list[_Config], config: str | None, split: str | None) -> list[ListedFile]:
    by_name = {config.config_name: config for config in configs}
    usual = [config.config_name for config in configs if config.default or config.config_name == "default"]
    if config is None and len(by_name) > 1 and not usual:
        raise ConfigError(f"{folder}: expected `config:`, because it has several; there are: {', '.join(by_name)}")
    result = by_name[_one_of(folder, "config", config, list(by_name)) if config else (usual or list(by_name))[0]]
    files = list(_split_files(result))
    names = list(dict.fromkeys(name for name, _ in files))
    if split is not None:
        _one_of(folder, "split", split, names)
    inputs: dict[str, ListedFile] = {}
    for name, pattern in files:
        if split in (None, name):
            for path, _, stat in expand_listed(join(folder, result.data_dir, pattern)):
                inputs[path] = path, path[len(folder.rstrip("/")) + 1 :], stat
    return sorted(inputs.values())


def _split_files(config: _Config) -> Iterator[tuple[str, str]]:
    """Yield the globs of a configuration, each with its split."""
    files = config.data_files if config.data_files is not None else "**"
    for file in [files] if isinstance(files, str) else files:
        if isinstance(file, str):
            yield _TRAIN, file
        else:
            yield from ((file.split, path) for path in ([file.path] if isinstance(file.path, str) else file.path))


def _of_state(folder: str) -> list[ListedFile]:
    """Return the files of a split written by `datasets`; there may be others, of its cache."""
    state = _read(join(folder, "state.json"), _State)
    if state.indices:
        raise ConfigError(
            f"{folder}: expected rows in their order, got an index of them ({state.indices[0].filename}); "
            "write it again with `datasets`: flatten_indices(), then save_to_disk"
        )
    paths = [(join(folder, file.filename), file.filename) for file in state.files]
    return [(path, name, stat) for path, name in paths for _, _, stat in expand_listed(path)]


def _read(path: str, type_: type[T]) -> T:
    if not exists(path):
        raise NothingThere(f"{path}: expected a folder that `datasets.save_to_disk` wrote, got one without this file")
    try:
        return msgspec.json.decode(store_of(path).read(path), type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: expected what `datasets.save_to_disk` writes, got: {error}") from None


def _one_of(folder: str, option: str, name: str, names: list[str]) -> str:
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
        raise ConfigError(f"{folder}: expected a {option} of it, got {name!r}{hint}")
    return name


# --- crawls ----------------------------------------------------------------------------------------------------------

BASE = "https://data.commoncrawl.org/"
"""Where the files officially are."""

NAMES = re.compile(r"(?<![A-Za-z0-9])CC-(?:MAIN|NEWS)-\d{4}(?:-\d{2,4})?(?![0-9-]*[0-9])")
"""Names of crawls in a text, a path for one."""

FIELDS = ("crawl", "dump")
"""Keys of metadata that name a document's crawl."""

_FOLDER = "crawl-data/"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w-][\w.-]*)*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_LONGEST = 10_000  # bytes of a path


def check_name(name: str) -> None:
    """Raise ValueError for an impossible name of a crawl."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"expected the name of a crawl such as CC-MAIN-2024-10, got {name!r}")


Files = int | str | list[int | str] | None
"""Which files of a list, counted from 0: ``N``, ``A-B`` (with B), or a list of these; None for all."""


def file_ranges(files: Files) -> list[range] | None:
    """Return the numbers of the selected files; None for all.

    Raises:
        ValueError: if it is nothing of this kind.
    """
    if files is None:
        return None
    results = []
    for part in files if isinstance(files, list) else [files]:
        match = _RANGE.fullmatch(str(part).strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise ValueError(f"expected N, A-B with A up to B, or a list of these, counted from 0; got {part!r}")
        results.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if not results:
        raise ValueError("expected at least one file, got an empty list")
    return results


def crawl_files(crawl: str, format: str, base: str) -> list[str]:
    """Return the paths of a crawl's files, below its base.

    Args:
        crawl: its name.
        format: Format of the files.
        base: Folder of all crawls; on the web, in a bucket, or on disk.

    Raises:
        ConfigError: if there is no such list.
        DataError: if it cannot be read, or is no list.
    """
    return list(read_list(join(base, _FOLDER, crawl, f"{format}.paths.gz")))


def select_files(paths: list[str], files: Files) -> list[str]:
    """Return the selected paths, each once, in their order.

    Raises:
        ConfigError: if there are not so many.
    """
    parts = file_ranges(files) or [range(len(paths))]
    if (last := max(part[-1] for part in parts)) >= len(paths):
        raise ConfigError(f"expected files among 0-{len(paths) - 1}, which are all of the crawl's list; got {last}")
    return [paths[number] for number in sorted({number for part in parts for number in part})]


def place_of(path: str, base: str) -> tuple[str, str]:
    """Return the address of a file, and its path below the folder."""
    return join(base, store_of(base).quoted(path)), path.removeprefix(_FOLDER)


def read_list(path: str) -> Iterator[str]:
    """Yield the paths in a list.

    Raises:
        NothingThere: if there is no such list.
        DataError: if it cannot be read, or is no list.
    """
    try:
        stored = store_of(path).open(path)
    except FileNotFoundError:
        raise NothingThere(
            f"expected a crawl with a list of its files, got nothing at {path}; is that the crawl's name, and does it "
            "have files of this format?"
        ) from None
    except OSError as error:
        raise DataError(f"expected a readable file, got {error.strerror or error}", path=path) from None
    number = 0
    with Lines(path, _LONGEST, stored=stored, fixed=True) as listed_:
        for line in listed_:
            text = line.decode(errors="replace").strip()
            if not text:
                continue
            if fault_of_name(text):
                raise DataError(f"expected the path of a file, got {text[:200]!r}", path=path, line=listed_.number)
            number += 1
            yield text
    if not number:
        raise DataError("expected paths of files, got none", path=path)
