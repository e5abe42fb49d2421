"""Reads sections of a configuration for several commands, each once."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolkit.config.settings import ConfigNode
from toolkit.config.yaml_nodes import Path
from toolkit.data.dataset import Dataset
from toolkit.describe.about import splits_of_files
from toolkit.errors import ConfigError
from toolkit.ingest import ingest_config
from toolkit.records.sets import SetSchema
from toolkit.stages.context import Context
from toolkit.storage.paths import absolute, is_folder, not_in
from toolkit.tag import plan as tag_plan, schema_check
from toolkit.tag.run import ShardToTag, settings_of

if TYPE_CHECKING:
    from toolkit.mix.settings import MixSettings


def aligned(context: Context) -> dict[str, SetSchema]:
    """Return the schemas of the sets of ``align:``, by their current inputs.

    Raises:
        ConfigError: naming the place in the file, if that cannot be told.
    """
    if not context.has("align"):
        return {}
    from toolkit.align import align_config

    def read() -> dict[str, SetSchema]:
        entries, limit = align_config.read_section(context.section("align")), context.config.max_document_bytes
        return {entry.set: align_config.schema_of(entry, entry.inputs(), limit) for entry in entries}

    return context.once("align", read)


def tags(context: Context) -> tag_plan.Plan:
    """Return the plan of the section ``tag:``.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """

    def before() -> dict[str, SetSchema]:
        results = aligned(context) if context.options.command == "run" else {}
        return ingest_config.set_schemas(context.entries) | results

    def read() -> tag_plan.Plan:
        elsewhere = type_lookup(context, lambda: context.dataset, before)
        return tag_plan.read_section(context.section("tag"), elsewhere, context.own_types_known)

    return context.once("tag", read)


def type_lookup(
    context: Context, dataset: Callable[[], Dataset], planned: Callable[[], Mapping[str, SetSchema]]
) -> tag_plan.Others:
    """Return a function for the types of other sets; see `schema_check.types_elsewhere`."""
    return schema_check.types_elsewhere(
        dataset, planned, lambda name: [] if name in context.made_sets else context.external(name)
    )


def to_tag(context: Context, plan: tag_plan.Plan, schemas: Mapping[str, SetSchema]) -> ShardToTag:
    """Return the work of a plan with these schemas on a shard; its name is empty."""
    return ShardToTag(
        dataset=context.dataset,
        plan=plan,
        settings=settings_of({name: schemas[name] for name in plan.sets}),
        shard="",
        max_document_bytes=context.config.max_document_bytes,
    )


def annotations(context: Context, schemas: Mapping[str, SetSchema] | None = None) -> dict[str, tag_plan.Plan]:
    """Return the plans of the sets of ``annotate:``, in order.

    Args:
        context: Context of the configuration.
        schemas: Sets of earlier sections; by default those on disk.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """
    from toolkit.learn.annotate import annotate_config

    result = context.known_sets("annotate") if schemas is None else schemas
    place, dataset = context.section("annotate"), context.dataset
    return annotate_config.read_section(place, dataset, result, partial(type_lookup, context), context.own_types_known)


def mix(context: Context) -> "MixSettings":
    """Return the settings of ``mix:``, with the `about.splits` of its files.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """

    def read() -> "MixSettings":
        from toolkit.mix import settings as mix_settings  # which other commands do not need

        folder, ids = os.path.dirname(context.options.config or ""), context.config.duplicate_ids
        result = mix_settings.read_section(context.section("mix"), folder, lambda: context.dataset, ids)
        splits = splits_of_files(context.section("about")) if context.has("about") else {}
        return msgspec.structs.replace(result, splits=splits) if splits else result

    return context.once("mix", read)


def output(context: Context) -> str:
    """Return the named output folder, or the one of ``mix:``.

    Raises:
        ConfigError: if several paths are named, or the mix of the configuration has not been run.
    """
    named = context.options.targets
    if len(named) > 1:
        raise ConfigError(f"expected one output, got {len(named)}: {', '.join(named)}")
    folder = named[0].rstrip("/") if named else mix(context).output.path
    if not named and not is_folder(folder):
        lacks = f"expected the output of a mix, got nothing there; run `toolkit mix`{not_in(folder)}"
        raise ConfigError(f"{folder}: {lacks}")
    return folder


# --- editions, further outputs of one configuration; and the section tokenize:, the mix as tokens ---------------------


TOKENIZE = "tokenize"


def with_tokens(context: Context) -> Context:
    """Return a context with a mix into tokens.

    A configuration without a mix tokenizes all documents.

    Raises:
        ConfigError: if the section names a format, or the output of the mix.
    """
    from toolkit.mix.settings import TOKENS

    section = context.section(TOKENIZE)
    options = section.value
    if not isinstance(options, dict) or not isinstance(options.get("path"), str):
        raise section.error((), "expected {path: …, tokenizer: …, eod: …, files: …}")
    if "format" in options:
        raise section.error(
            ("format",),
            f"expected no `format` here, because it is always `{TOKENS}`; `files:` says which files are written",
        )
    mix = {key: value for key, value in context.config.mix.items() if key not in (EDITIONS, "rejected")}
    output = mix.get("output")
    path = output.get("path") if isinstance(output, dict) else None
    if isinstance(path, str) and absolute(path) == absolute(options["path"]):
        raise section.error(("path",), "expected an output of its own, got that of the mix")
    merged = {**mix, "output": {**options, "format": TOKENS}}
    lines = {at: line for at, line in context.source.lines.items() if at[:2] != ("mix", "output")}
    for at, line in context.source.lines.items():
        if at[:1] == (TOKENIZE,):
            lines["mix", "output", *at[1:]] = line
            lines.setdefault(("mix",), line)
    value, moved = {**context.source.value, "mix": merged}, (("mix", "output"), (TOKENIZE,))
    source = ConfigNode(value, context.source.name, lines, context.source.inside, moved, context.source.root)
    config = msgspec.structs.replace(context.config, mix=merged)
    return replace(context, config=config, source=source, written=context.config)


def command_of(name: str) -> str:
    """Return the command for an output, by its name in `mixes`."""
    return TOKENIZE if name == TOKENIZE else "mix"


EDITIONS = "editions"


def mix_and_editions(context: Context) -> dict[str, Context]:
    """Return the contexts of the mix and its editions, by name."""
    return {"mix": context, **{f"edition {name}": edition for name, edition in editions(context).items()}}


def mixes(context: Context) -> dict[str, Context]:
    """Return the contexts of mix, editions and tokens, by name."""
    return (mix_and_editions(context) if context.has("mix") else {}) | (
        tokens(context) if context.has(TOKENIZE) else {}
    )


def tokens(context: Context) -> dict[str, Context]:
    """Return the context of the mix into tokens, by its name."""
    return {TOKENIZE: with_tokens(context)}


def editions(context: Context) -> dict[str, Context]:
    """Return a context for each edition of the mix, by its name; it differs in the section ``mix:`` alone.

    What an edition says stands in place of what the mix says; of `output`, key by key, as far as
    its format has them. Dropped documents are kept aside only where the edition itself says where.

    Raises:
        ConfigError: if one is no mapping, or has no output of its own.
    """
    mix = context.config.mix
    place = context.source.at("mix") if EDITIONS in mix else ConfigNode({})
    editions = mix.get(EDITIONS) or {}
    if not isinstance(editions, dict):
        raise place.error((EDITIONS,), "expected `NAME: {rules: …, output: {path: …}}`")
    if editions and not isinstance(mix.get("output", {}), dict):
        raise place.error(("output",), "expected {format: …, path: …}")
    results: dict[str, Context] = {}
    paths = {_path_of(mix): "the mix"}
    for name, own in editions.items():
        path = _path_of(own) if isinstance(own, dict) else ""
        if not path:
            raise place.error((EDITIONS, name), "expected what differs from the mix, with `output: {path: …}`")
        if path in paths:
            raise place.error(
                (EDITIONS, name, "output", "path"), f"expected an output of its own, got that of {paths[path]}"
            )
        paths[path] = f"the edition {name}"
        results[str(name)] = _changed(context, str(name), own)
    return results


def _path_of(mix: dict[str, Any]) -> str:
    output = mix.get("output")
    path = output.get("path") if isinstance(output, dict) else None
    return absolute(path) if isinstance(path, str) and path else ""


def _inherited(output: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the common output options of the mix and an edition."""
    from toolkit.mix.settings import OF_OUTPUT
    from toolkit.mix.writer import find_writer

    if own.get("format", output.get("format")) == output.get("format") or not isinstance(own["format"], str):
        return output
    with suppress(ConfigError):  # of a format that is not there, which is told where the edition is read
        class_ = find_writer(own["format"], "format")
        lacks = {"compression"} if not class_.CONCATENATES else set[str]()
        lacks |= {"provenance"} if not class_.FIELDS else set()
        types = {field.encode_name: field.type for field in msgspec.structs.fields(class_)} | dict.fromkeys(
            OF_OUTPUT, Any
        )
        return {key: value for key, value in output.items() if key in types.keys() - lacks and _fits(value, types[key])}
    return output


def _fits(value: Any, type_: Any) -> bool:
    try:
        return bool(msgspec.convert(value, type_) is not msgspec.UNSET)
    except msgspec.ValidationError:
        return False


def _changed(context: Context, name: str, own: dict[str, Any]) -> Context:
    mix = {key: value for key, value in context.config.mix.items() if key not in (EDITIONS, "rejected")}
    output = {**_inherited(mix.get("output", {}), own["output"]), **own["output"]}
    merged = {**mix, **own, "output": output}
    source = context.source
    here: Path = ("mix", EDITIONS, name)
    lines = {path: line for path, line in source.lines.items() if path[:2] != here[:2]}
    lines |= {("mix", *path[3:]): line for path, line in source.lines.items() if path[:3] == here and len(path) > 3}
    changed = ConfigNode({**source.value, "mix": merged}, source.name, lines, source.inside, root=source.root)
    config = msgspec.structs.replace(context.config, mix=merged)
    return replace(context, config=config, source=changed, written=context.config)
