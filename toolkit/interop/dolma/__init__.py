"""Configurations of the Dolma toolkit 1.2 as configurations of ours.

Here: hints for commands, flags and configurations of Dolma that do not run here.

Source: the options and their meaning are those of Dolma 1.2.1. What differs, and why, is in ``docs/dolma.md``.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from toolkit.config.settings import ConfigNode

DEDUPE = (
    "run `toolkit dedup -c FILE`, which reads it; attributes that Dolma's deduper has written are mixed as they are"
)
TOKENS = (
    "use a section `tokenize:` with `files: dolma` in a configuration of our own, and run "
    "`toolkit tokenize`; the tagger `tokens` counts tokens"
)
COMMANDS = {
    "dedupe": DEDUPE,
    "tokens": TOKENS,
    "list": "run `toolkit taggers`",
    "stat": "run `toolkit stats ROOT --attribute all`, with the folder that has `documents` and `attributes`",
    "warc": "run `toolkit ingest -c FILE` with `format: warc` and `preset: dolma`, whose options give its texts",
}
"""By commands of Dolma's that are no commands here."""

SECTIONS = {
    "dedupe": DEDUPE,
    "bloom_filter": DEDUPE,
    "tokenizer": TOKENS,
    "tokenizer_name_or_path": TOKENS,
    "linearizer": COMMANDS["warc"],
}
"""By keys at the top of Dolma's configurations, of which no command here has any."""

OURS = {"dataset", "ingest", "tag", "dedup", "mix"}
"""Keys at the top of configurations of ours alone."""

_LISTS = ("documents", "taggers", "destination", "tagger_modules")
_FLAGS = ("experiment", "processes", "ignore_existing", "dryrun", *_LISTS)
_GROUPS = ("work_dir.", "profile.", "dedupe.", "bloom_filter.", "tokenizer.", "streams")


def is_dolma(source: ConfigNode) -> bool:
    """Return True for a configuration of Dolma's. It has `streams`, `taggers` or `dedupe` and no key of ours."""
    value = source.value
    if not isinstance(value, dict) or value.keys() & OURS:
        return False
    return bool(value.keys() & {"streams", "taggers", "dedupe"})


def of_arguments(args: Sequence[str]) -> str | None:
    """Return a hint for a command line of Dolma's; otherwise None."""
    command = args[0] if args else ""
    if command in COMMANDS:
        return f"`{command}` is a command of Dolma's: {COMMANDS[command]}"
    flags = [item for item in args if item.startswith("--") and _is_flag(item[2:].partition("=")[0])]
    flags = flags if flags != ["--dryrun"] else []  # more likely a slip of our own option
    if command not in ("tag", "mix") or not flags:
        return None
    message = f"{flags[0]} is an option of Dolma's: here settings are in a configuration, and KEY=VALUE overrides them"
    if command == "tag" and (results := _tagger(args[1:])):
        return f"{message}; write {msgspec.json.encode(results).decode()} into a file, and run `toolkit -c FILE tag`"
    return f"{message}, as in `toolkit -c FILE {command} processes=4`"


def _is_flag(name: str) -> bool:
    return name.removeprefix("no-") in (*_FLAGS, "shuffle") or name.startswith(_GROUPS)


def _tagger(args: Sequence[str]) -> dict[str, Any]:
    """Return the configuration in options of Dolma's tagger. It is empty without documents and taggers."""
    results: dict[str, Any] = {}
    key = ""
    for item in args:
        if item.startswith("-"):
            key, equals, value = item.lstrip("-").partition("=")
            if key in _LISTS:
                results[key] = [value] if equals else []
            elif key in _FLAGS:
                results[key] = value if equals else True
        elif key in _LISTS:
            results[key].append(item)
        elif key in _FLAGS:
            results[key] = item
    if str(results.get("processes", "")).isdecimal():
        results["processes"] = int(results["processes"])
    return results if results.get("documents") and results.get("taggers") else {}


def check(source: ConfigNode, command: str) -> None:
    """Raise ConfigError for a configuration of another command of Dolma's."""
    value = source.value
    if isinstance(value, dict) and not (command == "dedup" and "dedupe" in value):
        for key in value:
            if key in SECTIONS and not value.keys() & OURS:
                raise source.error(
                    (key,), f"expected a configuration that runs here, got one of Dolma's: {SECTIONS[key]}"
                )
