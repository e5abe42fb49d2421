"""Write a first configuration: a recipe that ships with the toolkit, or one for your files; alone, list the recipes."""

import os
import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_line import Flag, Words
from toolkit.command_line import Options as CommonOptions
from toolkit.commands import _data_files as files
from toolkit.commands._data_files import There, is_dataset, there_at
from toolkit.config import recipes
from toolkit.config import settings as config
from toolkit.config.sizes import in_words
from toolkit.data.places import is_within, normal
from toolkit.errors import ConfigError, amount
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest.in_place import open_dataset
from toolkit.ingest.reader import READERS
from toolkit.ingest.reading.preview import Preview, preview
from toolkit.ingest.section import read_section
from toolkit.mix.settings import writer_with
from toolkit.mix.writer import not_carried
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome, table
from toolkit.storage import store_of
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import fixed_part, is_folder, is_glob, strip_suffix

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
    """Return a configuration for what is at a path.

    Args:
        path: of the files of others, or of a dataset.
        config_path: of the configuration, for its comments.

    Raises:
        ConfigError: if nothing is there that can be read.
        DataError: if the first file is damaged.
    """
    name = name_of(path)
    if is_dataset(path):
        return (
            _HEAD.format(path=path, what="a dataset", config=config_path)
            + _of_dataset(path)
            + _rest(name, None, "dolma")
        )
    there = there_at(path)
    entry, notes = _entry(there, name)
    root = _free(f"data/{name}", there)
    seen, *others = _seen(entry, root)
    if twin := _twin(seen, others):
        entry["ids"], notes["ids"] = "{path}/{id}", os.path.basename(twin)
        seen, *_ = _seen(entry, root)
    size = sum(stored.size for _, _, stored in there.files if stored)
    much = f", {in_words(size)}" if size >= 1e5 else ""
    what = f"{amount(len(there.files), 'file')}{much}, read by `format: {there.format}`"
    parts = [_HEAD.format(path=path, what=what, config=config_path)]
    parts.append(f"dataset: {root:32} # documents and attributes go there\n")
    parts.append("ingest:\n" + _lines(entry, notes, there))
    if there.others:
        more = f" and {len(there.others) - 1:,} more" if there.others[1:] else ""
        parts.append(f"# Not read: {there.others[0]}{more}\n")
    if READERS.find(there.format).IN_PLACE and "on_error" not in entry:
        parts.append(_IN_PLACE.format(entry=_flow(_in_place(entry))))
    parts.append(_fields(seen))
    return "".join(parts) + _rest(name, files.example_rule(seen.documents), _output(there, seen), seen)


def name_of(path: str) -> str:
    """Return a name for the data at a path: of its last part that is none of a glob."""
    fixed = fixed_part(path) if is_glob(path) else path
    last = strip_suffix(fixed.rstrip("/").rpartition("/")[2], tuple(COMPRESSIONS))
    stem = last if is_glob(path) or is_folder(path) else last.partition(".")[0]
    return re.sub(r"[^\w-]+", "-", stem, flags=re.ASCII).strip("-_") or "own"


def _free(root: str, there: There) -> str:
    """Return a folder for a dataset that holds no file of those that are read."""
    inside = any(is_within(normal(path), normal(root)) for path, _, _ in there.files[:1] if store_of(path).is_local)
    return f"{root}-corpus" if inside else root


def _entry(there: There, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return an entry of `ingest:`, and what is to be said of its options."""
    entry: dict[str, Any] = {"format": there.format, "from": there.pattern} | there.options
    notes = {key: ", ".join(each for each in names if each != entry.get(key)) for key, names in there.choices.items()}
    class_ = READERS.find(there.format)
    options = {key: value for key, value in there.options.items() if key not in ("config", "split")}
    rows = files.first_rows(there.format, options, there.files[0][0])
    if rows and "header" in class_.__struct_fields__ and (names := files.names_without_header(rows[0])):
        entry["header"] = options["header"] = names
        rows = files.first_rows(there.format, options, there.files[0][0])
    entry["source"] = name
    if rows is not None:
        is_text = "delimiter" in class_.__struct_fields__
        found = files.chosen(rows, typed=is_text)
        entry |= found
        notes["typed"] = (
            "values of CSV are texts; these are not" if is_text else "has numbers such as NaN, which are null"
        )
        lacking, nulls = files.lacks_text(rows, found)
        for option, count in (("on_error", lacking), ("null_text", nulls)):
            if count and lacking + nulls < len(rows):
                entry[option] = "skip"
                notes[option] = f"{count:,} of the first {len(rows):,} rows"
    elif "documents" in class_.__struct_fields__ and (len(there.files) > 1 or there.pattern != there.files[0][0]):
        entry["documents"] = "file"
    return entry, notes


def _seen(entry: dict[str, Any], root: str) -> list[Preview]:
    """Return the first documents of the first files as they would be.

    Raises:
        ToolkitError: if there would be none.
    """
    source = config.ConfigNode({"dataset": root, "ingest": [entry]})
    dataset = open_dataset(source, root, None, None)
    works = ingest_plan.plan(read_section(source.at("ingest")), dataset, 1 << 30, overwrite=True)
    return [preview(work, 200) for work in works[:_COMPARED]]


def _twin(first: Preview, others: Sequence[Preview]) -> str | None:
    """Return the path of a file with a document that has the source and the id of one of the first file."""
    names = {(row["source"], row["id"]) for row in first.documents}
    shared = (each.input for each in others if any((row["source"], row["id"]) in names for row in each.documents))
    return next(shared, None)


def _lines(entry: dict[str, Any], notes: dict[str, str], there: There) -> str:
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


def _fields(seen: Preview) -> str:
    rows: Sequence[tuple[str, str]] = [(each.name, each.type) for each in seen.fields if each.name not in ("text",)]
    wide = max((len(name) for name, _ in rows), default=0)
    listed = "".join(f"#   {name:{wide}}  {type_}\n" for name, type_ in rows[:40])
    more = f"#   and {len(rows) - 40} more\n" if rows[40:] else ""
    return f"\n# Fields of the first {amount(seen.looked_at, 'document')}, by the names of rules:\n{listed}{more}"


_HEAD = """\
# Made by `toolkit init --from {path}`: {what}.
# Look before anything is written:   toolkit run -c {config} --dry-run
# Then:                              toolkit run -c {config}

"""

_IN_PLACE = """\
# To use the files where they are, without a copy, write this in place of `ingest:`
#   documents: {entry}
"""


def _of_dataset(path: str) -> str:
    return f"dataset: {_flow(path):32} # its documents are there; attributes go beside them\n"


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


def _rest(name: str, rule: str | None, format: str, seen: Preview | None = None) -> str:
    """Return the tags, rules and the output.

    Args:
        name: Name of the data.
        rule: Expression of an example.
        format: Output format.
        seen: First documents, if they were read.
    """
    quoted = "'" + rule.replace("'", "''") + "'" if rule else ""
    example = f"    # - keep: {quoted}\n" if rule else ""
    oscar = {"format": "oscar", "path": f"data/{name}-oscar", "warc_headers": _headers(seen)}
    if format == "oscar":
        return _REST.format(example=example, output=_flow(oscar), others="or dolma, parquet, text")
    others = "or dolma, text" if format == "parquet" else "or parquet, text"
    shown = _REST.format(
        example=example,
        output=_flow({"format": format, "path": f"data/{name}-{format}"}),
        others=f"keeps all fields; {others}",
    )
    return f"{shown}  # as OSCAR, which has these fields alone:\n  # output: {_flow(oscar)}\n"


def _headers(seen: Preview | None) -> dict[str, str]:
    """Return the WARC headers that fields of documents stand for: id, URI and date."""
    names = [each.name.removeprefix("document.") for each in seen.fields] if seen else ["added", "metadata.url"]

    def first(wanted: Sequence[str]) -> str | None:
        return next((path for name in wanted for path in (name, f"metadata.{name}") if path in names), None)

    headers = {"warc-record-id": "id", "warc-target-uri": first(_URLS), "warc-date": first(_DATES)}
    return {header: path for header, path in headers.items() if path}


def _output(there: There, seen: Preview) -> str:
    """Return the output format that loses no field of documents but the name of their source."""
    lost = not_carried(writer_with("oscar", b"{}"), seen.paths)
    if seen.paths[1] and lost.keys() <= {"source"}:
        return "oscar"
    return "parquet" if there.format in ("parquet", "arrow", "csv", "tsv") else "dolma"


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit init``."""

    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = (
        "toolkit init",
        "toolkit init fineweb -o my.yaml",
        "toolkit init --from news.csv",
        "toolkit init --from hub/fineweb -o my.yaml",
    )

    targets: Annotated[tuple[str, ...], Words("the name of a recipe", "RECIPE")] = ()
    path: Annotated[
        str | None,
        Flag("write a configuration for these files: a file, a folder, or a glob in quotes", "--from", metavar="PATH"),
    ] = None
    output: Annotated[
        str | None, Flag("the file to write; by default the name of recipe or data", "-o", "--output", metavar="FILE")
    ] = None


def run(context: Context, options: Options) -> Outcome:
    """Write a recipe, or a configuration for a path, to a file that is not there yet; or list the recipes."""
    if options.path is not None:
        return _for_path(options.path, options)
    if options.overrides:
        raise ConfigError(f"expected the name of a recipe, got {options.overrides[0]!r}; settings go to `toolkit run`")
    if not options.targets:
        if options.output is not None:
            raise ConfigError(f"expected the name of a recipe, too; there are: {', '.join(recipes.names())}")
        return _list()
    if len(options.targets) > 1:
        raise ConfigError(f"expected one recipe, got {len(options.targets)}: {', '.join(options.targets)}")
    name = options.targets[0].removeprefix(recipes.PREFIX).removesuffix(".yaml")
    path = options.output or f"{name}.yaml"
    return _write(path, recipes.text_of(name), "edit the values of `dataset:`, `from:` and `path:`, then")


def _for_path(given: str, options: Options) -> Outcome:
    if more := (*options.targets, *options.overrides):
        raise ConfigError(f"expected a path after `--from`, or a recipe, got both: {given} and {more[0]}")
    path = options.output or f"{name_of(given)}.yaml"
    _check_new(path)
    return _write(path, text_for(given, path), "it runs as it is:")


def _list() -> Outcome:
    found = {name: recipes.about(name) for name in recipes.names()}
    rows = [["recipe", "what it makes"], *([name, about] for name, about in found.items())]
    hint = "`toolkit init RECIPE` writes one to a file; `toolkit run -c recipe:RECIPE` runs it as it is."
    return Outcome(text=f"{table(rows)}\n\n{hint}", data={"recipes": found})


def _check_new(path: str) -> None:
    if not store_of(path).is_local:
        raise ConfigError(f"{path}: expected a file on disk")
    if os.path.lexists(path):
        raise _there(path)


def _there(path: str) -> ConfigError:
    return ConfigError(f"{path}: expected a file that is not there yet, got one; choose another: `-o FILE`")


def _write(path: str, text: str, next_step: str) -> Outcome:
    """Write a configuration, and say how it is run: in lines that can be pasted.

    Raises:
        ConfigError: if something has its name already, or it cannot be written.
    """
    _check_new(path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise ConfigError(f"{path}: expected a file that can be written, got: No such file or directory")
    store_of(path).check_named(path, path)
    if not store_of(path).create(path, text.encode()):
        raise _there(path)
    line = f"  toolkit run -c {shlex.quote(path)}"
    following = [f"{line} --dry-run  # what would be done; writes no data", f"{line}            # does it"]
    return Outcome(text="\n".join([f"wrote {path}", next_step, *following]), data={"config": path})
