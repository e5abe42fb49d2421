"""``toolkit features``: how Hugging Face datasets reads an OSCAR output, as Python."""

import msgspec

from toolkit import validating
from toolkit.commands import Context, Outcome
from toolkit.errors import ConfigError
from toolkit.mixing import settings as mix_settings
from toolkit.paths import is_folder, join
from toolkit.streams import Lines


class _Headers(msgspec.Struct):
    warc_headers: dict[str, str]


def run(context: Context) -> Outcome:
    """Prints the features of an output, with the header names that are really there."""
    folder = _folder(context)
    files = validating.data_files(folder)
    if not files:
        raise ConfigError(f"{folder}: expected an OSCAR output, got no data files")
    decoder = msgspec.json.Decoder(_Headers)
    names: dict[str, None] = {}
    for path in files:
        with Lines(join(folder, path), 2 * context.config.max_document_bytes) as lines:
            for number, line in enumerate(lines):
                if context.options.first is not None and number >= context.options.first:
                    break
                try:
                    names.update(dict.fromkeys(decoder.decode(line).warc_headers))
                except msgspec.DecodeError as error:
                    raise ConfigError(f"{path}:{number + 1}: expected an OSCAR document, got: {error}") from None
    return Outcome(text=_python(folder, sorted(names)), data={"warc_headers": sorted(names)})


def _folder(context: Context) -> str:
    if context.options.targets:
        return context.options.targets[0].rstrip("/")
    found = mix_settings.read_section(context.section("mix"), context.folder, lambda: context.dataset)
    if not is_folder(found.output.path):
        raise ConfigError(f"{found.output.path}: expected the output of a mix, got nothing there; run `toolkit mix`")
    return found.output.path


def _python(folder: str, headers: list[str]) -> str:
    fields = "\n".join(f'        "{name}": text,' for name in headers)
    return f'''from datasets import Features, List, Value, load_dataset

text = Value("string")
identification = {{"label": text, "prob": Value("float32")}}
features = Features({{
    "content": text,
    "warc_headers": {{
{fields}
    }},
    "metadata": {{
        "identification": identification,
        "annotation": List(text),
        "sentence_identifications": List(identification),
    }},
}})
data = load_dataset("json", data_files="{folder}/*/*.jsonl.gz", features=features)'''
