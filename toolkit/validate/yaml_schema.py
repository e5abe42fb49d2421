"""The JSON Schema of the whole configuration, section by section."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from toolkit.config import docstrings, scale, settings
from toolkit.describe.about import About
from toolkit.errors import ConfigError, MissingExtra
from toolkit.execution.workers import DEFAULT, EXECUTORS
from toolkit.ingest.ingest_config import Common as Input
from toolkit.ingest.reader import READERS
from toolkit.learn.annotate.annotator import Annotator
from toolkit.learn.annotate.prompt import Prompt
from toolkit.learn.train import trained_models
from toolkit.learn.train.trainer import TRAINERS
from toolkit.make.stage import STAGES
from toolkit.mix.budget import BudgetForm
from toolkit.mix.join import JoinedOption
from toolkit.mix.settings import TOKENS, OutputSettings, SectionForm, StreamForm
from toolkit.mix.writer import WRITERS
from toolkit.plugins import Kind
from toolkit.rules.kinds import all_forms
from toolkit.rules.rules_yaml import GroupForm, IncludeForm
from toolkit.storage_options import Duration, Size, StorageOptions
from toolkit.tag.plan import OF_SETS
from toolkit.tag.tagger import TAGGERS
from toolkit.whole_corpus import corpus_config
from toolkit.whole_corpus.kind import KINDS

Schema = dict[str, Any]


VARIABLE: Schema = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
"""A setting that the environment gives, in whole or in part."""

_SIZE: Schema = {
    "description": "bytes: 1000000, 500 MB or 64 MiB",
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*([KkMmGgTt][Ii]?)?[Bb]?\s*$"},
    ],
}
_DURATION: Schema = {
    "description": "90 s, 5 min or 1 h",
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([Ss]|[Ss]ecs?|[Ss]econds?|[Mm]in(ute)?s?|[Hh](ours?)?)?\s*$",
        },
    ],
}
_WORDED = {Size: _SIZE, Duration: _DURATION}
_SCALARS = ("integer", "number", "boolean")


class Definitions:
    """The ``$defs`` of a schema, as its parts need them.

    Attributes:
        schemas: Schemas by name.
    """

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def add(self, name: str, schema: Schema) -> Schema:
        """Add a definition; return its reference."""
        self.schemas[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def add_plugin(
        self, name: str, class_: type[Any], before: Mapping[str, Schema] = {}, after: Mapping[str, Schema] = {}
    ) -> Schema:
        """Add the schema of a plugin with its options between others; return its reference."""
        options = {**before, **self.properties(class_), **after}
        return self.add(name, {"description": about(class_), **closed(options, required(class_))})

    def properties(self, class_: type[msgspec.Struct], other: Mapping[str, Schema] = {}) -> dict[str, Schema]:
        """Return the schemas of a Struct's options, by YAML name, with defaults.

        Args:
            class_: Class of the options.
            other: schemas of options whose types do not tell what they are.
        """
        results, documented = {}, docstrings.attributes_of(class_)
        for field in msgspec.structs.fields(class_):
            own = other.get(field.encode_name)
            schema = self.of_type(field.type, class_.__name__) if own is None else {**_described(field.type), **own}
            if description := documented.get(field.name):
                schema.pop("description", None)
                schema = {"description": description, **schema}
            if isinstance(field.default, str | int | float | bool):
                schema["default"] = settings.plain(field.default)
            results[field.encode_name] = schema
        return results

    def of_type(self, type_: Any, owner: str) -> Schema:
        """Return the schema of a type; what it refers to is called by the owner."""
        (schema,), inner = msgspec.json.schema_components(
            [type_], schema_hook=_worded, ref_template=f"#/$defs/{owner}.{{name}}"
        )
        structs = {class_.__name__: class_ for class_ in _structs(type_)}
        for name, definition in inner.items():
            documented = docstrings.attributes_of(structs[name]) if name in structs else {}
            for field in msgspec.structs.fields(structs[name]) if documented else ():
                if field.name in documented:
                    definition["properties"][field.encode_name]["description"] = documented[field.name]
            self.schemas[f"{owner}.{name}"] = _with_variables(definition)
        results: Schema = _with_variables(schema)
        return results


def required(class_: type[msgspec.Struct]) -> list[str]:
    """Return the options of a Struct without a default."""
    return [field.encode_name for field in msgspec.structs.fields(class_) if field.required]


def closed(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """Return the schema of a mapping with these keys and no others."""
    needed = [*required]
    return {"type": "object", "properties": dict(properties), "additionalProperties": False} | (
        {"required": needed} if needed else {}
    )


def when(condition: Schema, then: Schema) -> Schema:
    """Return a schema with a condition."""
    return {"if": condition, "then": then}


def has(key: str, *values: str) -> Schema:
    """Return the condition of a mapping with a key and certain values."""
    return {"required": [key]} | ({"properties": {key: {"enum": [*values]}}} if values else {})


def named(names: Iterable[str], about: str) -> Schema:
    """Return the schema of a plugin's name or reference."""
    return {"description": about, "anyOf": [{"enum": [*names]}, {"type": "string", "pattern": r"[:$]"}]}


def classes(kind: Kind[Any]) -> dict[str, type[Any]]:
    """Return the usable plugins of a kind, by name."""
    results = {}
    for name in kind.names():
        try:
            results[name] = kind.find(name)
        except (ConfigError, MissingExtra):  # of another package; whoever names it is told
            continue
    return results


def by_name(
    key: str, plugins: Mapping[str, type[Any]], about: str, inside: Callable[[str, type[Any]], Schema]
) -> Schema:
    """Return the schema of a mapping with a plugin's name and options.

    Args:
        key: Key that names it.
        plugins: the plugins.
        about: Description of the key.
        inside: gives the schema of the mapping for a plugin, by its name and class.
    """
    return {
        "type": "object",
        "properties": {key: named(plugins, about)},
        "allOf": [when(has(key, name), inside(name, class_)) for name, class_ in plugins.items()],
    }


def about(class_: type[Any]) -> str:
    """Return the description of a plugin, in a sentence."""
    return docstrings.first_line(class_).replace("``", "`")


def _described(type_: Any) -> Schema:
    """Return the description of an annotated type."""
    texts = (meta.description for meta in getattr(type_, "__metadata__", ()) if isinstance(meta, msgspec.Meta))
    return next(({"description": item} for item in texts if item), {})


def _structs(type_: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield the Structs in a type, and those in their fields."""
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        yield type_
        inner = [field.type for field in msgspec.structs.fields(type_)]
    else:
        inner = [*get_args(type_)]
    for part in inner:
        yield from _structs(part)


def _worded(type_: type[Any]) -> Schema:
    return dict(_WORDED[type_])


def _with_variables(schema: Any) -> Any:
    """Return a schema with ``${NAME}`` in place of scalars, without titles.

    What docstrings say of a Struct is left out, too: it is written for who reads the code.
    """
    if isinstance(schema, list):
        return [_with_variables(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    is_struct = "properties" in schema
    inside = {
        key: value
        if key in ("default", "enum")
        else {name: _with_variables(schema) for name, schema in value.items()}
        if key == "properties"
        else _with_variables(value)
        for key, value in schema.items()
        if key != "title" and not (is_struct and key == "description")
    }
    if inside.get("type") not in _SCALARS and "enum" not in inside:
        return inside
    outside = {key: inside.pop(key) for key in ("description", "default") if key in inside}
    return {**outside, "anyOf": [inside, VARIABLE]}


DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_SET = "^[A-Za-z0-9_-]+$"
_VALUE: Schema = {"type": ["string", "number", "boolean"]}
_PARAMETERS: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]},
}
_SCOPE: dict[str, Schema] = {
    "parameters": {"description": "numbers under names that rules use", **_PARAMETERS},
    "languages": {
        "description": "parameters by label: a mapping, a table, or a glob of files, one a label",
        "anyOf": [_TEXT, {"type": "object", "additionalProperties": _PARAMETERS}],
    },
}


def whole() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a configuration, with installed plugins.

    It accepts whatever the toolkit accepts. What depends on data, on other files, or on several settings together, such
    as the names of attributes in a rule, it does not look at.
    """
    definitions = Definitions()
    sections = {
        "documents": _documents(),
        "executor": _executor(definitions),
        "storage": closed(definitions.properties(StorageOptions)),
        "ingest": {"anyOf": [entry := _input(definitions), {"type": "array", "items": entry}]},
        "tag": {"type": "object", "propertyNames": {"pattern": _SET}, "additionalProperties": _set(definitions)},
        "make": _stages(definitions),
        **{name: _of_whole(definitions, name) for name in settings.stages("whole")},
        "annotate": _annotations(definitions),
        "train": _models(definitions),
        "mix": _mix(definitions),
        "tokenize": _tokenize(definitions),
        "about": closed(definitions.properties(About)),
    }
    return {
        "$schema": DIALECT,
        "title": "Configuration of toolkit",
        **closed(definitions.properties(settings.Config, sections)),
        "$defs": definitions.schemas,
    }


def _documents() -> Schema:
    """Return the schema of a path, or of a mapping; one of files of another format has that format's options, too."""
    return {
        "anyOf": [
            _TEXT,
            {"type": "null"},
            {
                "type": "object",
                "properties": {"path": _TEXT, "include": _TEXTS, "exclude": _TEXTS},
                "required": ["path"],
                **when({"required": ["format"]}, {}),
                "else": {"propertyNames": {"enum": ["path", "include", "exclude"]}},
            },
        ]
    }


def _executor(definitions: Definitions) -> Schema:
    results = classes(EXECUTORS)

    def of(name: str) -> Schema:
        return closed(
            {"type": _TEXT, **definitions.properties(results[name].Settings)}, required(results[name].Settings)
        )

    schema = by_name("type", results, "which one", lambda name, _: of(name))
    return {**schema, "if": {"not": has("type")}, "then": of(DEFAULT)}


def _input(definitions: Definitions) -> Schema:
    shared = definitions.properties(Input)

    def of(name: str, class_: type[Any]) -> Schema:
        def beside(_: str, plugin: type[Any]) -> Schema:
            own = {**definitions.properties(class_), **definitions.properties(plugin), **shared}
            return closed(own, [*required(class_), *required(plugin)])

        if class_.PLUGIN is None:
            schema = closed({**definitions.properties(class_), **shared}, required(class_))
        else:
            option, kind, default = class_.PLUGIN
            schema = by_name(option, classes(kind), f"the {kind.word}", beside)
            schema |= {"if": {"not": has(option)}, "then": beside(default, kind.find(default))}
        return definitions.add(f"input.{name}", {"description": about(class_), **schema})

    return {
        **by_name("format", classes(READERS), "the input format", of),
        "required": ["format"],
        "oneOf": [{"required": ["from"]}, {"required": ["crawl"]}],
        "dependentRequired": {"files": ["crawl"], "base_url": ["crawl"]},
    }


def _set(definitions: Definitions) -> Schema:
    """Return the schema of an attribute set: a tagger, several, or several with options for all of them."""
    results = classes(TAGGERS)
    of_sets = {**dict.fromkeys(OF_SETS, _TEXT), scale.OPTION: definitions.of_type(scale.ScaleOption, "tagger")}
    own = {"tagger": _TEXT, "as": {"description": "the key, in place of the tagger's name", **_TEXT}, **of_sets}

    def of(name: str, class_: type[Any]) -> Schema:
        return definitions.add_plugin(f"tagger.{name}", class_, after=own)

    alone = [name for name, class_ in results.items() if not required(class_)]
    tagger = definitions.add(
        "tagger",
        {
            "anyOf": [
                named(alone, "the name of a tagger, `package.module:Class` or `path/file.py:Class`"),
                {**by_name("tagger", results, "the tagger", of), "required": ["tagger"]},
            ]
        },
    )
    several = {"type": "array", "items": tagger, "minItems": 1}
    together = closed({"taggers": {"anyOf": [tagger, several]}, **of_sets}, ["taggers"])
    is_list = when({"type": "array"}, several)
    return {**is_list, "else": {**when({"type": "object", **has("taggers")}, together), "else": tagger}}


def _stages(definitions: Definitions) -> Schema:
    """Return the schema of the section of stages of authors of plugins."""
    beside = {"as": {"description": "the key, in place of the stage's name", **_TEXT}, "stage": _TEXT, "dataset": _TEXT}

    def of(name: str, class_: type[Any]) -> Schema:
        return definitions.add_plugin(f"stage.{name}", class_, after=beside)

    results = classes(STAGES)
    entry = (
        by_name("stage", results, "the stage", of) if results else {"type": "object", "properties": {"stage": _TEXT}}
    )
    entry |= {"required": ["stage"]}
    return {"type": "object", "propertyNames": {"pattern": _SET}, "additionalProperties": entry}


def _of_whole(definitions: Definitions, section: str) -> Schema:
    """Return the schema of a section with corpus-wide sets."""
    results = {name: class_ for name, class_ in classes(KINDS).items() if section == class_.SECTION}
    joined = {"type": "array", "items": _joined(definitions)}
    shared = definitions.properties(corpus_config.Common, {"attributes": joined})
    against = {"description": "other datasets, whose documents stay: ROOT, {dataset: ROOT}, {documents: …}, or some"}

    def of(name: str, class_: type[Any]) -> Schema:
        properties = {**shared, **definitions.properties(class_), **({"against": against} if class_.AGAINST else {})}
        return definitions.add(f"{section}.{name}", closed(properties, required(class_)))

    entry = by_name("kind", results, "the kind of set to compute", of)
    if section in results:  # which need not be named
        entry |= {"if": {"not": has("kind")}, "then": {"$ref": f"#/$defs/{section}.{section}"}}
    else:
        entry |= {"required": ["kind"]}
    return {"type": "object", "propertyNames": {"pattern": _SET}, "additionalProperties": entry}


def _annotations(definitions: Definitions) -> Schema:
    """Return the schema of the sets by language models. A prompt is a file, or stands there."""
    prompt = {"anyOf": [_TEXT, closed(definitions.properties(Prompt), required(Prompt))]}
    sets = {"description": "sets that `when` reads", "type": "array", "items": _TEXT}
    key = {"description": "the key, in place of the prompt's name", **_TEXT}
    of_sets = {"as": key, "when": _TEXT, "attributes": sets}
    properties = {**definitions.properties(Annotator, {"prompt": prompt}), **of_sets}
    entry = definitions.add("annotate.entry", closed(properties, required(Annotator)))
    return {"type": "object", "propertyNames": {"pattern": _SET}, "additionalProperties": entry}


def _models(definitions: Definitions) -> Schema:
    """Return the schema of the section of trained models."""
    joined = {"type": "array", "items": _joined(definitions)}
    shared: Schema = {"kind": _TEXT, "when": {"anyOf": [_TEXT, {"type": "null"}]}, "attributes": joined}

    def of(name: str, class_: type[Any]) -> Schema:
        return definitions.add(f"train.{name}", closed({**shared, **definitions.properties(class_)}, required(class_)))

    entry = by_name("kind", classes(TRAINERS), "of what kind", of)
    entry |= {"if": {"not": has("kind")}, "then": {"$ref": f"#/$defs/train.{trained_models.DEFAULT}"}}
    return {"type": "object", "propertyNames": {"pattern": _SET}, "additionalProperties": entry}


def _joined(definitions: Definitions) -> Schema:
    return {
        "anyOf": [
            _TEXT,
            definitions.add("joined", closed(definitions.properties(JoinedOption), required(JoinedOption))),
        ]
    }


def _mix(definitions: Definitions) -> Schema:
    rules = _rules(definitions)
    joining = {"attributes": {"type": "array", "items": _joined(definitions)}, "rules": rules, **_SCOPE}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    sample = {"anyOf": [share, {"type": "object", "additionalProperties": share}]}
    stream = closed(definitions.properties(StreamForm, {**joining, "name": _TEXT, "sample": sample}))
    streams = {
        "anyOf": [
            {"type": "array", "items": definitions.add("stream", stream), "minItems": 1},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/stream"}, "minProperties": 1},
        ]
    }
    budget = definitions.add("budget", closed(definitions.properties(BudgetForm)))
    forms = {**joining, "streams": streams, "budget": budget, "output": _output(definitions)}
    properties = definitions.properties(SectionForm, forms)
    return closed(properties)


def _tokenize(definitions: Definitions) -> Schema:
    class_ = WRITERS.find(TOKENS)
    shared = definitions.properties(OutputSettings)
    common = {key: schema for key, schema in shared.items() if key not in ("format", "compression")}
    return closed({**common, **definitions.properties(class_)}, ["path", *required(class_)])


def _output(definitions: Definitions) -> Schema:
    shared = definitions.properties(OutputSettings)

    def of(name: str, class_: type[Any]) -> Schema:
        common = {key: schema for key, schema in shared.items() if key != "compression" or class_.CONCATENATES}
        return definitions.add_plugin(f"output.{name}", class_, before=common)

    return {**by_name("format", classes(WRITERS), "the output format", of), "required": ["format", "path"]}


def _rules(definitions: Definitions) -> Schema:
    """Return the schema of a list of rules; its entries are known by the key that they have."""
    list_of_rules: Schema = {"$ref": "#/$defs/rules"}
    forms = all_forms()
    entries = []
    for form in forms:
        schema = _form(definitions, form, {})
        siblings = [other.WORD for other in forms if other.KEY == form.KEY and other.WORD and not form.WORD]
        is_other = [{"not": has(form.KEY, *siblings)}] if siblings else []
        is_it = has(form.KEY, form.WORD) if form.WORD else {"allOf": [has(form.KEY), *is_other]}
        entries.append(when(is_it, schema))
    for form_, key in ((GroupForm, "group"), (IncludeForm, "include")):
        entries.append(when(has(key), _form(definitions, form_, {**_SCOPE, "rules": list_of_rules})))
    keys = [*dict.fromkeys([*sorted(form.KEY for form in forms), "group", "include"])]
    rule = {"type": "object", "anyOf": [{"required": [key]} for key in keys], "allOf": entries}
    return definitions.add("rules", {"type": ["array", "null"], "items": definitions.add("rule", rule)})


def _form(definitions: Definitions, form: type[msgspec.Struct], other: Mapping[str, Schema]) -> Schema:
    return definitions.add(
        f"rule.{form.__name__.removesuffix('Form')}", closed(definitions.properties(form, other), required(form))
    )
