"""A configuration of Dolma's mixer becomes mixes of ours: one for each output folder."""

import os
import re
from typing import Any, Literal

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.errors import DataError
from toolkit.interop.dolma.places import Translation, resolve, roots_of
from toolkit.mix.writer import check_label

Syntax = Literal["jsonpath", "jq"]


class OutputOptions(ConfigStruct):
    """``streams[].output``."""

    path: str
    max_size_in_bytes: int = 2 * 1024**3
    discard_fields: list[str] | None = None
    min_text_length: int = 0


class FilterOptions(ConfigStruct):
    """``streams[].filter``: documents stay that match any of `include`, if there are, and none of `exclude`."""

    include: list[str] = []
    exclude: list[str] = []
    syntax: Syntax | None = None


class SpanOptions(ConfigStruct):
    """``streams[].span_replacement[]``."""

    span: str
    min_score: float | None = None
    max_score: float | None = None
    replacement: str = ""
    syntax: Syntax | None = None


class CompressionOptions(ConfigStruct):
    """``streams[].compression``."""

    input: str | None = None
    output: str | None = None


class StreamOptions(ConfigStruct):
    """``streams[]``."""

    name: str
    output: OutputOptions
    documents: list[str] = []
    attributes: list[str] = []
    filter: FilterOptions | None = None
    span_replacement: list[SpanOptions] = []
    compression: CompressionOptions | None = None


class WorkDirOptions(ConfigStruct):
    """``work_dir``; nothing is kept there."""

    input: str | None = None
    output: str | None = None


class MixerOptions(ConfigStruct):
    """A configuration of the mixer.

    Attributes:
        allow_empty: a key of ours: whether an output without documents is published.
        compat: ``strict``, a key of ours: where a user may depend on what Dolma gives although it is odd, give that.
    """

    streams: list[StreamOptions]
    work_dir: WorkDirOptions | None = None
    processes: int = 1
    shuffle: bool = True
    dryrun: bool = False
    allow_empty: bool = False
    compat: Literal["meaning", "strict"] = "meaning"


def read_mixer(source: ConfigNode) -> Translation:
    """Read a configuration of Dolma's mixer.

    Raises:
        ConfigError: naming file and line of what cannot be used.
    """
    resolve(source)
    mixer_options = settings.convert(source, MixerOptions, "a configuration of Dolma's mixer")
    if not mixer_options.streams:
        raise source.error(("streams",), "expected streams")
    outputs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for i, stream in enumerate(mixer_options.streams):
        place = source.at("streams", i)
        output = _output(stream, mixer_options, place)
        folder = os.path.normpath(stream.output.path)
        first, streams = outputs.setdefault(folder, (output, {}))
        if first != output:
            raise place.error(
                ("output",), "expected the same output options as of the stream before with this path, or another path"
            )
        for name, entry in _streams(stream, mixer_options, place).items():
            if name in streams:
                raise place.error(("name",), f"expected each stream under a name of its own, got {name!r} twice")
            streams[name] = entry
    configs: list[dict[str, Any]] = [
        {
            "processes": max(1, mixer_options.processes),
            "mix": {"streams": streams, "output": output, "allow_empty": mixer_options.allow_empty},
        }
        for output, streams in outputs.values()
    ]
    return Translation(configs, mixer_options.dryrun)


def _output(stream: StreamOptions, mixer_options: MixerOptions, place: ConfigNode) -> dict[str, Any]:
    output = stream.output
    return {
        "format": "dolma",
        "path": output.path,
        "layout": "mixer" if mixer_options.shuffle else "inputs",
        "attributes": "original",
        "discard": output.discard_fields or [],
        "min_text_length": output.min_text_length,
        "sort_keys": mixer_options.compat == "strict",
        "provenance": "line",
        "keep_empty": True,
        "part_size": output.max_size_in_bytes,
        "compression": _compression(stream, place),
    }


def _compression(stream: StreamOptions, place: ConfigNode) -> str:
    compression = stream.compression or CompressionOptions()
    suffix = f".{compression.input}"
    if compression.input not in (None, "infer") and not all(
        document.endswith(suffix) or (document.endswith(".zstd") and suffix == ".zst") for document in stream.documents
    ):
        raise place.error(
            ("compression", "input"), f"expected documents compressed as their suffix says, got {compression.input!r}"
        )
    names = {None: "gzip", "infer": "gzip", "gz": "gzip", "zst": "zstd", "": "none"}
    if compression.output not in names:
        raise place.error(("compression", "output"), f"expected gz, zst or '', got {compression.output!r}")
    return names[compression.output]


def _streams(stream: StreamOptions, mixer_options: MixerOptions, place: ConfigNode) -> dict[str, dict[str, Any]]:
    """Return our streams for one of Dolma's, by name; one for each root."""
    if not stream.documents:
        raise place.error((), "expected `documents:`, a list of globs")
    rules = [*_filter_rules(stream, mixer_options), *_span_rules(stream)]
    route = [{"route": repr(stream.name), "name": f"output {stream.name}"}] if mixer_options.shuffle else []
    try:
        if mixer_options.shuffle:
            check_label(stream.name)
    except DataError as error:
        message = str(error).replace("expected a label", "expected the name of a stream, which its files have,", 1)
        raise place.error(("name",), message) from None
    with place.errors_at("documents"):
        roots = roots_of(stream.documents, stream.attributes)
    name = re.sub(r" $", "_", "".join(c if c.isalnum() or c in "_.- " else "_" for c in stream.name))
    name = name if name[:1].isalpha() or name.startswith("_") else f"_{name}"
    return {
        name if i == 0 else f"{name}.{i}": {
            "dataset": root.dataset(stream.output.path),
            "attributes": stream.attributes,
            "same_keys": "later",
            "overlaps": "first" if mixer_options.compat == "strict" else "union",
            **({"past_end": "clamp", "order": root.order} if mixer_options.compat == "strict" else {}),
            "rules": [*rules, *route],
        }
        for i, root in enumerate(roots)
    }


def _filter_rules(stream: StreamOptions, mixer_options: MixerOptions) -> list[dict[str, Any]]:
    if stream.filter is None:
        return []
    how: dict[str, Any] = {"syntax": stream.filter.syntax or "jsonpath"}
    if mixer_options.compat == "strict" and how["syntax"] == "jsonpath":
        how["strict"] = True
    rules: list[dict[str, Any]] = []
    if stream.filter.include:
        rules.append({"keep": stream.filter.include, "name": "not included", **how})
    return [*rules, *({"drop": pattern, **how} for pattern in dict.fromkeys(stream.filter.exclude))]


def _span_rules(stream: StreamOptions) -> list[dict[str, Any]]:
    rules = []
    names = dict.fromkeys(stream.filter.exclude if stream.filter else (), 1)  # those rules are called by their pattern
    for span_options in stream.span_replacement:
        names[span_options.span] = names.get(span_options.span, 0) + 1
        rule = {
            "replace": span_options.span,
            "by": span_options.replacement,
            "syntax": span_options.syntax or "jsonpath",
            "name": span_options.span
            if names[span_options.span] == 1
            else f"{span_options.span} #{names[span_options.span]}",
            "min_score": span_options.min_score,
            "max_score": span_options.max_score,
        }
        rules.append({key: value for key, value in rule.items() if value is not None})
    return rules
