"""Editions, further outputs of one configuration; and the section ``tokenize:``, the mix as tokens."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from toolkit.config.explaining import Path
from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError
from toolkit.mix.settings import OF_OUTPUT, TOKENS
from toolkit.mix.writer import find_writer
from toolkit.stages.context import Context
from toolkit.storage.paths import absolute

SECTION = "tokenize"


def with_tokens(context: Context) -> Context:
    """Return a context whose mix writes tokens: with the options of the section as output, otherwise the same.

    A configuration without a mix tokenizes all documents.

    Raises:
        ConfigError: if the section names a format, or the output of the mix.
    """
    section = context.section(SECTION)
    given = section.value
    if not isinstance(given, dict) or not isinstance(given.get("path"), str):
        raise section.error((), "expected {path: …, tokenizer: …, eod: …, files: …}")
    if "format" in given:
        raise section.error(
            ("format",),
            f"expected no `format` here, because it is always `{TOKENS}`; `files:` says which files are written",
        )
    mix = {key: value for key, value in context.config.mix.items() if key not in (KEY, "rejected")}
    output = mix.get("output")
    path = output.get("path") if isinstance(output, dict) else None
    if isinstance(path, str) and absolute(path) == absolute(given["path"]):
        raise section.error(("path",), "expected an output of its own, got that of the mix")
    merged = {**mix, "output": {**given, "format": TOKENS}}
    lines = {at: line for at, line in context.source.lines.items() if at[:2] != ("mix", "output")}
    for at, line in context.source.lines.items():
        if at[:1] == (SECTION,):
            lines["mix", "output", *at[1:]] = line
            lines.setdefault(("mix",), line)
    value, moved = {**context.source.value, "mix": merged}, (("mix", "output"), (SECTION,))
    source = ConfigNode(value, context.source.name, lines, context.source.inside, moved, context.source.root)
    config = msgspec.structs.replace(context.config, mix=merged)
    return replace(context, config=config, source=source, written=context.config)


KEY = "editions"


def of(context: Context) -> dict[str, Context]:
    """Return a context for each edition of the mix, by its name; it differs in the section ``mix:`` alone.

    What an edition says stands in place of what the mix says; of `output`, key by key, as far as
    its format has them. Dropped documents are kept aside only where the edition itself says where.

    Raises:
        ConfigError: if one is no mapping, or has no output of its own.
    """
    mix = context.config.mix
    place = context.source.at("mix") if KEY in mix else ConfigNode({})
    editions = mix.get(KEY) or {}
    if not isinstance(editions, dict):
        raise place.error((KEY,), "expected `NAME: {rules: …, output: {path: …}}`")
    found: dict[str, Context] = {}
    paths = {_path_of(mix): "the mix"}
    for name, own in editions.items():
        path = _path_of(own) if isinstance(own, dict) else ""
        if not path:
            raise place.error((KEY, name), "expected what differs from the mix, with `output: {path: …}`")
        if path in paths:
            raise place.error(
                (KEY, name, "output", "path"), f"expected an output of its own, got that of {paths[path]}"
            )
        paths[path] = f"the edition {name}"
        found[str(name)] = _changed(context, str(name), own)
    return found


def _path_of(mix: dict[str, Any]) -> str:
    output = mix.get("output")
    path = output.get("path") if isinstance(output, dict) else None
    return absolute(path) if isinstance(path, str) and path else ""


def _inherited(output: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the mix's output that the format of an edition has, too."""
    if own.get("format", output.get("format")) == output.get("format"):
        return output
    with suppress(ConfigError):  # of a format that is not there, which is told where the edition is read
        class_ = find_writer(own["format"], "format")
        lacks = {"compression"} if not class_.CONCATENATES else set[str]()
        lacks |= {"provenance"} if not class_.FIELDS else set()
        types = {field.encode_name: field.type for field in msgspec.structs.fields(class_)} | dict.fromkeys(
            OF_OUTPUT, Any
        )
        return {
            each: value for each, value in output.items() if each in types.keys() - lacks and _fits(value, types[each])
        }
    return output


def _fits(value: Any, type_: Any) -> bool:
    try:
        return bool(msgspec.convert(value, type_) is not msgspec.UNSET)
    except msgspec.ValidationError:
        return False


def _changed(context: Context, name: str, own: dict[str, Any]) -> Context:
    mix = {key: value for key, value in context.config.mix.items() if key not in (KEY, "rejected")}
    output = {**_inherited(mix.get("output", {}), own["output"]), **own["output"]}
    merged = {**mix, **own, "output": output}
    source = context.source
    here: Path = ("mix", KEY, name)
    lines = {path: line for path, line in source.lines.items() if path[:2] != here[:2]}
    lines |= {("mix", *path[3:]): line for path, line in source.lines.items() if path[:3] == here and len(path) > 3}
    changed = ConfigNode({**source.value, "mix": merged}, source.name, lines, source.inside, root=source.root)
    config = msgspec.structs.replace(context.config, mix=merged)
    return replace(context, config=config, source=changed, written=context.config)
