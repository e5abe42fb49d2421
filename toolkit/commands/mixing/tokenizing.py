"""The section ``tokenize:``: the documents of the mix as tokens, by the same rules; their text is not written first."""

from dataclasses import replace

import msgspec

from toolkit.commands.mixing.editions import KEY as EDITIONS
from toolkit.commands.steps.context import Context
from toolkit.config.settings import Source
from toolkit.mix.section import TOKENS
from toolkit.storage.paths import absolute

SECTION = "tokenize"


def of(context: Context) -> Context:
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
    mix = {key: value for key, value in context.config.mix.items() if key not in (EDITIONS, "rejected")}
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
    source = Source(value, context.source.name, lines, context.source.inside, moved, context.source.root)
    config = msgspec.structs.replace(context.config, mix=merged)
    return replace(context, config=config, source=source, written=context.config)
