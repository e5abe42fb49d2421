"""Write a first configuration: a recipe that ships with the toolkit, or one for your files; alone, list the recipes."""

import functools
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import msgspec

from toolkit.command_options import Flag, Options as CommonOptions, Words
from toolkit.config import recipes, settings as config
from toolkit.data.dataset import SHARD_SUFFIXES, is_within, normal_path
from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER
from toolkit.errors import ConfigError, DataError, NothingThere, amount
from toolkit.ingest import file_kinds, folders, in_place, ingest_config, plan as ingest_plan
from toolkit.ingest.input_rows.preview import Preview, UnwrittenRejects, preview
from toolkit.ingest.reader import READERS, Draft, Input, Sample, first_drafts
from toolkit.ingest.tables.fields import FieldReader
from toolkit.mix.settings import writer_with
from toolkit.mix.writer import not_carried
from toolkit.stages.context import Context, Outcome, table
from toolkit.storage import store_of
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import exists, expand_listed, fixed_part, is_folder, is_glob, join, list_files, strip_suffix
from toolkit.storage.reading import Decompressed, Lines
from toolkit.storage_options import size_in_words

# --- what is at a path: the input format that reads it, and its fields ------------------------------------------------


TEXTS = ("text", "content", "raw_content", "body", "article", "document", "review", "sentence", "page_content")
IDS = ("id", "doc_id", "docid", "document_id", "_id", "uuid", "record_id", "warc_record_id", "key")
METADATA = ("metadata", "meta")

LONG = 20
"""Characters that texts have on average, at least, where no name tells them."""

Row = dict[str, Any]


def first_rows(format: str, options: dict[str, Any], path: str) -> list[Row] | None:
    """Return the first rows of a file, as they are in it; None if its items have no named fields.

    Raises:
        DataError: if it is damaged.
    """
    class_ = READERS.find(format)
    if not issubclass(class_, FieldReader):
        return None
    reader = msgspec.convert(options, _raw(class_))
    source = Input(path, None, 1 << 30, UnwrittenRejects(), sample=Sample())
    return [draft.extra for draft in first_drafts(reader, [source])]


@functools.cache
def _raw(class_: type[FieldReader]) -> type[FieldReader]:
    """Return a format's reader with raw rows in place of documents."""
    methods = {
        "draft": lambda _, row, number: Draft(text="", number=number, extra=row),
        "columns": lambda _, names, path: list(names),
    }
    result: Any = msgspec.defstruct(f"{class_.__name__}Rows", [], bases=(class_,), namespace=methods, frozen=True)
    return cast("type[FieldReader]", result)


def chosen(rows: Sequence[Row], *, typed: bool) -> dict[str, Any]:
    """Return the options for the mapping of fields.

    Args:
        rows: First rows.
        typed: True if values are texts, and types must be declared.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    fields = _mapped(rows, names)
    options: dict[str, Any] = {"fields": fields} if fields else {}
    named = [fields.get(name, name) for name in ("id", "text", "source", "added", "created")]
    used = {name for name in named if isinstance(name, str)}
    rest = set(names) - used
    if rest and fields.get("metadata", "metadata") not in names:
        options["metadata"] = "rest"
    elif "annotation" in rest:  # which tables have for themselves
        options["metadata"] = ["annotation"]
    if typed:
        types = {name: type_ for name in names if name not in used and (type_ := _type_of(rows, name))}
        options |= {"typed": types} if types else {}
    elif missing := list(dict.fromkeys(name for row in rows for name in _not_finite(row) if name not in used)):
        options["typed"] = dict.fromkeys(missing, "float")
    return options


def _not_finite(row: Row, inside: str = "") -> Iterator[str]:
    """Yield the names of fields with numbers unknown to JSON. These become null."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _not_finite(value, f"{inside}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield inside + name


def _mapped(rows: Sequence[Row], names: list[str]) -> Row:
    """Return the option `fields`: the fields with other names, or types."""
    fields: dict[str, Any] = {}
    if (text := _text_of(rows, names)) not in (None, "text"):
        fields["text"] = text
    id = next((name for name in IDS if name in names and _is_id(rows, name)), None)
    if id not in (None, "id"):
        fields["id"] = id
    elif id is None and "id" in names:
        fields["id"] = []
    for name in ("source", "added", "created"):
        values = _values(rows, name)
        is_text = all(isinstance(value, str) or hasattr(value, "isoformat") for value in values)
        if name in names and not (is_text and (name != "source" or len(values) == len(rows))):
            fields[name] = []  # a null source would become that of the configuration
    metadata = next((name for name in METADATA if name in names and _are_objects(_values(rows, name))), None)
    if metadata not in (None, "metadata"):
        fields["metadata"] = metadata
    elif metadata is None and "metadata" in names:
        fields["metadata"] = []
    return fields


def _values(rows: Iterable[Row], name: str) -> list[Any]:
    return [value for row in rows if (value := row.get(name)) is not None]


def _text_of(rows: Sequence[Row], names: Iterable[str]) -> str | None:
    """Return the text field: by its name, else the one with most text."""
    sizes = {}
    for name in names:
        values = _values(rows, name)
        if values and all(isinstance(value, str) for value in values):
            sizes[name] = sum(map(len, values))
    named = [name for name in TEXTS if name in sizes]
    if named:
        return named[0]
    long = [name for name, size in sizes.items() if size >= LONG * len(rows)]
    return max(long, key=lambda name: sizes[name], default=None)


def _is_id(rows: Sequence[Row], name: str) -> bool:
    """Return True if values may be ids: texts or integers, each once, never null."""
    values = [row.get(name) for row in rows]
    plain = all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)
    return plain and len(set(values)) == len(values) > 0


def _are_objects(values: Iterable[Any]) -> bool:
    for value in values:
        if isinstance(value, dict):
            continue
        try:
            msgspec.json.decode(value if isinstance(value, str) else b"", type=dict[str, Any] | None)
        except BAD_ROW:
            return False
    return True


_INT, _FLOAT = re.compile(r"[+-]?(?:0|[1-9]\d*)", re.ASCII), re.compile(r"[+-]?(?:0|[1-9]\d*)?\.\d+", re.ASCII)
_ADDRESS = re.compile(r"[a-z]+:/+\w")


def _type_of(rows: Sequence[Row], name: str) -> str | None:
    """Return the common type of a column's texts; None for plain texts."""
    values = [value for value in _values(rows, name) if isinstance(value, str) and value]
    if not values:
        return None
    if all(_INT.fullmatch(value) for value in values):
        return "int"
    if all(_INT.fullmatch(value) or _FLOAT.fullmatch(value) for value in values):
        return "float"
    return "bool" if all(value.lower() in ("true", "false") for value in values) else None


def names_without_header(row: Row) -> list[str]:
    """Return names for columns if the first row has values; else none."""
    if any(_INT.fullmatch(name) or _FLOAT.fullmatch(name) or _ADDRESS.match(name) for name in row):
        return [f"column_{i}" for i in range(1, len(row) + 1)]
    return []


def lacks_text(rows: Sequence[Row], options: dict[str, Any]) -> tuple[int, int]:
    """Return the number of rows without text, and with a null text."""
    name = options.get("fields", {}).get("text", "text")
    missing = sum(name not in row for row in rows)
    return missing, sum(row.get(name) is None for row in rows) - missing


def example_rule(documents: Sequence[Row]) -> str | None:
    """Return an example expression over metadata, or None. It keeps some of the documents."""
    names = list(dict.fromkeys(name for row in documents for name in row.get("metadata") or {}))
    for name in names:
        values = [(row.get("metadata") or {}).get(name) for row in documents]
        present = [value for value in values if value is not None]
        if not name.isidentifier() or not present:
            continue
        if all(isinstance(value, str) and len(value) < 20 for value in present):
            (value, count), *_ = Counter(present).most_common(1)
            if count > 1 and len(set(present)) < len(present) / 2 + 1:
                return f"metadata.{name} == {msgspec.json.encode(value).decode()}"
        elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
            middle = sorted(present)[len(present) // 2]
            test = f"metadata.{name} is not None and "
            return f"{test}metadata.{name} >= {middle:g}" if middle < 1e6 else None
    return None


_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
_BY_SUFFIX |= {".txt": "text", ".text": "text", ".md": "text"}
"""Formats of files whose first bytes do not tell."""

_FIRST_LINE = 16 << 20
"""Bytes in which a first line is looked for."""

_DOUBLED = re.compile(rb'[^\\,;\t|\n"]""|""[^,;\t|\r\n"]')
"""A doubled quote inside of a field of CSV; two quotes between delimiters are an empty field."""

_NO_DATA = ("README.md", "LICENSE", "LICENSE.txt", "dataset_infos.json", "dataset_info.json", "state.json")


class DataFiles(NamedTuple):
    """The files at a path.

    Attributes:
        pattern: Pattern of the files, as `from:` takes it.
        files: Files that it names.
        format: Format that reads them.
        options: Options of the format for these files.
        ignored: Names of other files in the folder.
        choices: Other choices of the options `config` and `split`.
    """

    pattern: str
    files: Sequence[folders.ListedFile]
    format: str
    options: dict[str, Any]
    ignored: list[str] = []
    choices: dict[str, list[str]] = {}


def data_at(path: str) -> DataFiles:
    """Return the data at a path: a file, a folder or a glob; on disk, in a bucket, or one file on the web.

    Raises:
        NothingThere: if there is no file.
        ConfigError: if no format reads what is there.
    """
    path = path.rstrip("/") or "/"
    if folders.is_listable(path):
        return _declared_files(path) or _in_folder(path)
    files = expand_listed(path)
    if is_glob(path) and len({suffix_of(relative) for _, relative, _ in files}) > 1:
        raise ConfigError(
            f"{path}: expected files of one kind, got {', '.join(sorted({relative for _, relative, _ in files})[:3])}; "
            "give a narrower glob"
        )
    return DataFiles(path, files, *_format(files[0][0]))


def is_dataset(path: str) -> bool:
    """Return True for a folder with documents in our own form."""
    folder = join(path.rstrip("/"), "documents")
    if not folders.is_listable(folder):
        return False
    first = next(iter(list_files(folder)), "")
    if not first.endswith(SHARD_SUFFIXES):
        return False
    try:
        with Lines(join(folder, first), _FIRST_LINE, fixed=True) as lines:
            DOCUMENT_DECODER.decode(next(lines, b""))
    except (*BAD_ROW, DataError):
        return False
    return True


def suffix_of(name: str) -> str:
    """Return the suffix of a file, without the one of compression."""
    stem = strip_suffix(name.rpartition("/")[2], tuple(COMPRESSIONS)).lower()
    return "." + stem.rpartition(".")[2] if "." in stem else ""


def _declared_files(path: str) -> DataFiles | None:
    """Return the declared files of a folder, by `datasets` or the hub; else None."""
    if any(exists(join(path, name)) for name in ("dataset_dict.json", "state.json")):
        splits = folders.splits_of(path)
        options = {"split": splits[0]} if len(splits) > 1 else {}
        files = folders.inputs_of_folder(path, (), None, options.get("split"))
        return DataFiles(path, files, _format(files[0][0])[0], options, choices={"split": splits})
    if configs := folders.configs_of(path):
        usual = "default" if "default" in configs else next(iter(configs))
        options = {"config": usual} if len(configs) > 1 or usual != "default" else {}
        if len(configs[usual]) > 1:
            options["split"] = configs[usual][0]
        files = folders.inputs_of_folder(path, (), usual, options.get("split"))
        format, more = _format(files[0][0])
        if issubclass(READERS.find(format), FieldReader):
            return DataFiles(
                path, files, format, options | more, choices={"config": [*configs], "split": configs[usual]}
            )
    return None


def _in_folder(path: str) -> DataFiles:
    """Return the files of the largest kind in a folder."""
    try:
        results = [item for item in expand_listed(join(path, "**")) if item[1].rpartition("/")[2] not in _NO_DATA]
    except NothingThere:
        results = []
    if not results:
        raise NothingThere(f"{path}: expected files, got none")
    sizes = Counter[str]()
    for _, relative, stat in results:
        sizes[_kind(relative)] += (stat.size if stat else 0) + 1
    fault: ConfigError | None = None
    for kind, _ in sizes.most_common():
        files = [item for item in results if _kind(item[1]) == kind]
        try:
            format, options = _format(files[0][0])
        except ConfigError as error:
            fault = fault or error
            continue
        ignored = [relative for _, relative, _ in results if _kind(relative) != kind]
        class_ = READERS.find(format)
        is_all = {file[0] for file in files} == {item[0] for item in expand_below(path, class_.SUFFIXES)}
        return DataFiles(path if is_all else join(path, _glob(files)), files, format, options, ignored)
    raise fault or NothingThere(f"{path}: expected files, got none")


def _kind(name: str) -> str:
    """Return the common kind of files, by their names."""
    suffix = suffix_of(name)
    return _BY_SUFFIX.get(suffix, suffix)


def _glob(files: Sequence[folders.ListedFile]) -> str:
    """Return a glob for files in a folder of several kinds."""
    endings = {suffix_of(name) + name[len(strip_suffix(name, tuple(COMPRESSIONS))) :] for _, name, _ in files}
    return f"**/*{endings.pop()}" if len(endings) == 1 else "**/*{" + ",".join(sorted(endings)) + "}"


def expand_below(path: str, suffixes: Sequence[str]) -> Sequence[folders.ListedFile]:
    """Return the files of a folder with these suffixes. They are those of `from:` with the folder."""
    try:
        return folders.list_inputs(path, suffixes) if suffixes else []
    except NothingThere:
        return []


def _format(path: str) -> tuple[str, dict[str, Any]]:
    """Return the format of a file, and its options.

    Raises:
        ConfigError: if there is none.
    """
    with Decompressed(path) as stream:
        head = stream.read(file_kinds.LOOKED_AT)
        while b"\n" not in head and len(head) < _FIRST_LINE and (more := stream.read(file_kinds.LOOKED_AT)):
            head += more
    suffix = suffix_of(path)
    result = file_kinds.kind_of(head)
    if _BY_SUFFIX.get(suffix) == "text" and (result is None or result.formats[:1] in (("csv",), ("tsv",))):
        result = None  # commas stand in texts, too
    by_suffix = _BY_SUFFIX.get(suffix, "")
    if result is not None and result.formats:
        format = by_suffix if by_suffix in result.formats else result.formats[0]
        return format, _options(head, result)
    if result is not None and not (by_suffix == "jsonl" and result.kind == "JSON"):
        raise ConfigError(f"{path}: expected a file that an input format reads, got {result}")
    if not by_suffix:
        names = ", ".join(READERS.names())
        raise ConfigError(f"{path}: expected a file of a known form, got another one; input formats are: {names}")
    return by_suffix, _options(head, result)


def _options(head: bytes, match: file_kinds.FileKind | None) -> dict[str, Any]:
    options: dict[str, Any] = {"delimiter": match.delimiter} if match and match.delimiter else {}
    if match and set(match.formats) & {"csv", "tsv"} and b'\\"' in head and not _DOUBLED.search(head):
        options["escape"] = "\\"
    try:
        head[: head.rfind(b"\n") + 1 or len(head)].decode()
    except UnicodeDecodeError:
        if match and set(match.formats) & {"csv", "tsv"}:
            options["encoding"] = "windows-1252"
    return options


# --- the configuration ------------------------------------------------------------------------------------------------


_PLAIN = re.compile(r"[A-Za-z_./~][\w./~-]*", re.ASCII)
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "~")

_ABOUT = {
    "header": "the file seems to have no row of names: give them here",
    "config": "others: {}",
    "split": "others: {}; without it, all",
    "fields": "where the fields of a document come from",
    "metadata": "all other fields are fields of the metadata",
    "typed": "{}",
    "documents": "each file is a document; without this, one ends at a blank line",
    "on_error": "{} have no such field",
    "null_text": "{} have a text that is null",
    "source": "a name for the origin; source and id identify a document",
    "ids": "the first file and {} have equal ids, so the path comes before them",
}

_COMPARED = 4
"""Files whose first ids are compared."""


def text_for(path: str, config_path: str) -> str:
    """Return a configuration for the data at a path.

    Args:
        path: Path of external files, or of a dataset.
        config_path: Config path of the configuration, for its comments.

    Raises:
        ConfigError: if nothing is there that can be read.
        DataError: if the first file is damaged.
    """
    name = name_of(path)
    if is_dataset(path):
        return (
            _HEAD.format(path=path, what="a dataset", config=config_path)
            + f"dataset: {_flow(path):32} # its documents are there; attributes go beside them\n"
            + _rest(name, None, "dolma")
        )
    data = data_at(path)
    entry, notes = _entry(data, name)
    root = _free(f"data/{name}", data)
    first, *rest = _previews(entry, root)
    if twin := _twin(first, rest):
        entry["ids"], notes["ids"] = "{path}/{id}", os.path.basename(twin)
        first, *_ = _previews(entry, root)
    size = sum(stored.size for _, _, stored in data.files if stored)
    much = f", {size_in_words(size)}" if size >= 1e5 else ""
    description = f"{amount(len(data.files), 'file')}{much}, read by `format: {data.format}`"
    parts = [_HEAD.format(path=path, what=description, config=config_path)]
    parts.append(f"dataset: {root:32} # documents and attributes go there\n")
    parts.append("ingest:\n" + _lines(entry, notes, data))
    if data.ignored:
        more = f" and {len(data.ignored) - 1:,} more" if data.ignored[1:] else ""
        parts.append(f"# Not read: {data.ignored[0]}{more}\n")
    if READERS.find(data.format).IN_PLACE and "on_error" not in entry:
        parts.append(_IN_PLACE.format(entry=_flow(_in_place(entry))))
    parts.append(_fields(first))
    return "".join(parts) + _rest(name, example_rule(first.documents), _output(data, first), first)


def name_of(path: str) -> str:
    """Return a name for the data at a path: of its last part that is none of a glob."""
    fixed = fixed_part(path) if is_glob(path) else path
    last = strip_suffix(fixed.rstrip("/").rpartition("/")[2], tuple(COMPRESSIONS))
    stem = last if is_glob(path) or is_folder(path) else last.partition(".")[0]
    return re.sub(r"[^\w-]+", "-", stem, flags=re.ASCII).strip("-_") or "own"


def _free(root: str, data: DataFiles) -> str:
    """Return a dataset folder apart from the input files."""
    inside = any(
        is_within(normal_path(path), normal_path(root)) for path, _, _ in data.files[:1] if store_of(path).is_local
    )
    return f"{root}-corpus" if inside else root


def _entry(data: DataFiles, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return an entry of `ingest:`, and notes on its options."""
    entry: dict[str, Any] = {"format": data.format, "from": data.pattern} | data.options
    notes = {key: ", ".join(name for name in names if name != entry.get(key)) for key, names in data.choices.items()}
    class_ = READERS.find(data.format)
    options = {key: value for key, value in data.options.items() if key not in ("config", "split")}
    rows = first_rows(data.format, options, data.files[0][0])
    if rows and "header" in class_.__struct_fields__ and (names := names_without_header(rows[0])):
        entry["header"] = options["header"] = names
        rows = first_rows(data.format, options, data.files[0][0])
    entry["source"] = name
    if rows is not None:
        is_text = "delimiter" in class_.__struct_fields__
        results = chosen(rows, typed=is_text)
        entry |= results
        notes["typed"] = (
            "values of CSV are texts; these are not" if is_text else "has numbers such as NaN, which are null"
        )
        missing, nulls = lacks_text(rows, results)
        for option, count in (("on_error", missing), ("null_text", nulls)):
            if count and missing + nulls < len(rows):
                entry[option] = "skip"
                notes[option] = f"{count:,} of the first {len(rows):,} rows"
    elif "documents" in class_.__struct_fields__ and (len(data.files) > 1 or data.pattern != data.files[0][0]):
        entry["documents"] = "file"
    return entry, notes


def _previews(entry: dict[str, Any], root: str) -> list[Preview]:
    """Return the first documents of the first files as they would be.

    Raises:
        ToolkitError: if there would be none.
    """
    source = config.ConfigNode({"dataset": root, "ingest": [entry]})
    dataset = in_place.open_dataset(source, root, None, None)
    works = ingest_plan.plan(ingest_config.read_section(source.at("ingest")), dataset, 1 << 30, overwrite=True)
    return [preview(work, 200) for work in works[:_COMPARED]]


def _twin(first: Preview, rest: Sequence[Preview]) -> str | None:
    """Return the path of a file with a repeated (source, id)."""
    names = {(row["source"], row["id"]) for row in first.documents}
    shared = (
        preview.input for preview in rest if any((row["source"], row["id"]) in names for row in preview.documents)
    )
    return next(shared, None)


def _lines(entry: dict[str, Any], notes: dict[str, str], data: DataFiles) -> str:
    lines = []
    for key, value in entry.items():
        written = f"{key}: {_flow(value)}"
        about = _ABOUT.get(key, "")
        if "{}" in about:
            about = about.format(notes[key]) if notes.get(key) else ""
        lines.append(f"    {written:38} # {about}" if about else f"    {written}")
    return "\n".join(["  - " + lines[0].lstrip(), *lines[1:]]) + "\n"


def _flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return msgspec.json.encode(value).decode()


def _in_place(entry: dict[str, Any]) -> dict[str, Any]:
    options = {key: value for key, value in entry.items() if key != "from"}
    return {"format": options.pop("format"), "path": entry["from"]} | options


def _fields(sample: Preview) -> str:
    rows: Sequence[tuple[str, str]] = [
        (field.name, field.type) for field in sample.fields if field.name not in ("text",)
    ]
    wide = max((len(name) for name, _ in rows), default=0)
    listed = "".join(f"#   {name:{wide}}  {type_}\n" for name, type_ in rows[:40])
    more = f"#   and {len(rows) - 40} more\n" if rows[40:] else ""
    return f"\n# Fields of the first {amount(sample.looked_at, 'document')}, by the names of rules:\n{listed}{more}"


_HEAD = """\
# Made by `toolkit init --from {path}`: {what}.
# Look before anything is written:   toolkit run -c {config} --dry-run
# Then:                              toolkit run -c {config}

"""

_IN_PLACE = """\
# To use the files where they are, without a copy, write this in place of `ingest:`
#   documents: {entry}
"""


_REST = """
tag:
  lines-0: line_language                           # the language of each line, by a model
  language-0: {{tagger: language, lines: lines-0}}   # of the document, by its lines
mix:
  attributes: [lines-0, language-0]
  rules:
    - {{drop: language.label is None, name: unidentified}}
{example}  output: {output}  # {others}
"""

_URLS = ("url", "uri", "link", "source_url", "page_url")
_DATES = ("added", "created", "date", "timestamp", "crawl_date", "published")
"""Fields that may stand for the URI and the date of a page, the likeliest first."""


def _rest(name: str, rule: str | None, format: str, sample: Preview | None = None) -> str:
    """Return the tags, rules and the output.

    Args:
        name: Name of the data.
        rule: Expression of an example.
        format: Output format.
        sample: First documents, if they were read.
    """
    quoted = "'" + rule.replace("'", "''") + "'" if rule else ""
    example = f"    # - keep: {quoted}\n" if rule else ""
    oscar = {"format": "oscar", "path": f"data/{name}-oscar", "warc_headers": _headers(sample)}
    if format == "oscar":
        return _REST.format(example=example, output=_flow(oscar), others="or dolma, parquet, text")
    alternatives = "or dolma, text" if format == "parquet" else "or parquet, text"
    text = _REST.format(
        example=example,
        output=_flow({"format": format, "path": f"data/{name}-{format}"}),
        others=f"keeps all fields; {alternatives}",
    )
    return f"{text}  # as OSCAR, which has these fields alone:\n  # output: {_flow(oscar)}\n"


def _headers(sample: Preview | None) -> dict[str, str]:
    """Return the fields for the WARC headers: id, URI and date."""
    names = [field.name.removeprefix("document.") for field in sample.fields] if sample else ["added", "metadata.url"]

    def first(candidates: Sequence[str]) -> str | None:
        return next((path for name in candidates for path in (name, f"metadata.{name}") if path in names), None)

    headers = {"warc-record-id": "id", "warc-target-uri": first(_URLS), "warc-date": first(_DATES)}
    return {header: path for header, path in headers.items() if path}


def _output(data: DataFiles, sample: Preview) -> str:
    """Return an output format for all fields but the source's name."""
    lost = not_carried(writer_with("oscar", b"{}"), sample.paths)
    if sample.paths[1] and lost.keys() <= {"source"}:
        return "oscar"
    return "parquet" if data.format in ("parquet", "arrow", "csv", "tsv") else "dolma"


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit init``.

    Attributes:
        targets: the name of a recipe
        path: write a configuration for these files: a file, a folder, or a glob in quotes
        output: the file to write; by default the name of recipe or data
    """

    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = (
        "toolkit init",
        "toolkit init fineweb -o my.yaml",
        "toolkit init --from news.csv",
        "toolkit init --from hub/fineweb -o my.yaml",
    )

    targets: Annotated[tuple[str, ...], Words("RECIPE")] = ()
    path: Annotated[str | None, Flag("--from", metavar="PATH")] = None
    output: Annotated[str | None, Flag("-o", "--output", metavar="FILE")] = None


def run(context: Context, options: Options) -> Outcome:
    """Write a recipe, or a new configuration for a path; or list the recipes."""
    if options.path is not None:
        if more := (*options.targets, *options.overrides):
            raise ConfigError(f"expected a path after `--from`, or a recipe, got both: {options.path} and {more[0]}")
        path = options.output or f"{name_of(options.path)}.yaml"
        _check_new(path)
        return _write(path, text_for(options.path, path), "it runs as it is:")
    if options.overrides:
        raise ConfigError(f"expected the name of a recipe, got {options.overrides[0]!r}; settings go to `toolkit run`")
    if not options.targets:
        if options.output is not None:
            raise ConfigError(f"expected the name of a recipe, too; there are: {', '.join(recipes.names())}")
        texts = {name: recipes.about(name) for name in recipes.names()}
        rows = [["recipe", "what it makes"], *map(list, texts.items())]
        hint = "`toolkit init RECIPE` writes one to a file; `toolkit run -c recipe:RECIPE` runs it as it is."
        return Outcome(text=f"{table(rows)}\n\n{hint}", data={"recipes": texts})
    if len(options.targets) > 1:
        raise ConfigError(f"expected one recipe, got {len(options.targets)}: {', '.join(options.targets)}")
    name = options.targets[0].removeprefix(recipes.PREFIX).removesuffix(".yaml")
    path = options.output or f"{name}.yaml"
    return _write(path, recipes.text_of(name), "edit the values of `dataset:`, `from:` and `path:`, then")


def _check_new(path: str) -> None:
    if not store_of(path).is_local:
        raise ConfigError(f"{path}: expected a file on disk")
    if os.path.lexists(path):
        raise _exists_error(path)


def _exists_error(path: str) -> ConfigError:
    return ConfigError(f"{path}: expected a file that is not there yet, got one; choose another: `-o FILE`")


def _write(path: str, text: str, next_step: str) -> Outcome:
    """Write a configuration, and return command lines to run it.

    Raises:
        ConfigError: if something has its name already, or it cannot be written.
    """
    _check_new(path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ConfigError(f"{path}: expected a file that can be written, got: No such file or directory")
    store_of(path).check_named(path, path)
    if not store_of(path).create(path, text.encode()):
        raise _exists_error(path)
    line = f"  toolkit run -c {shlex.quote(path)}"
    following = [f"{line} --dry-run  # what would be done; writes no data", f"{line}            # does it"]
    return Outcome(text="\n".join([f"wrote {path}", next_step, *following]), data={"config": path})
