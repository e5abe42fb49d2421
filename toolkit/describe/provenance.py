"""Tell the provenance of a dataset or an output: as facts, in words, and as PROV-O.

Source: Croissant RAI Vocabulary 1.0 (docs.mlcommons.org/croissant); PROV-O.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolkit.data import row_index
from toolkit.data.dataset import Dataset, InPlace
from toolkit.describe.about import About
from toolkit.describe.fields import KEYS
from toolkit.describe.model import ClearedDocuments, Facts, Ingested, Mixture, Tagged
from toolkit.distribution import NAME
from toolkit.errors import amount
from toolkit.ingest import folders
from toolkit.mix.publication import Manifest
from toolkit.mix.rule_effects.counts import RuleEffect
from toolkit.mix.writer import Writer
from toolkit.records import sets, takedown
from toolkit.records.ingested import InputRecord, load_all
from toolkit.rules.kinds import kind_called
from toolkit.rules.rule import Role
from toolkit.storage import models

_WORDS: dict[str, str] = {
    "binary": "page@ left out as no text (a PDF, an image, an archive …)",
    "content_encoding.": "page@ left out for the coding {}",
    "content_type.missing": "page@ whose server named no type",
    "content_type.": "answer@ of the type {} left out",
    "empty": "empty page@ left out",
    "invalid_utf8.drop_document": "document@ left out for bytes that are no UTF-8",
    "lost.crash": "page@ left out because the extractor died",
    "lost.timeout": "page@ left out because the extractor took too long",
    "lost.": "page@ left out because the extractor failed ({})",
    "no_text": "page@ without text left out",
    "not_http": "response@ without HTTP left out",
    "record.": "record@ of the type {} left out",
    "rejected.": "bad item@ kept aside ({})",
    "status.": "answer@ of the status {} left out",
    "too_large": "page@ left out as too large",
    "trim": "document@ without a long line left out",
    "charset.disbelieved": "document@ in another encoding than declared",
    "charset.guessed": "document@ whose encoding was guessed",
    "charset.replaced": "document@ with bytes that are invalid in the encoding, replaced by U+FFFD",
    "http.broken_": "document@ whose {} coding is damaged or cut off",
    "http.not_": "document@ whose header names the coding {}, which the body does not have",
    "invalid_utf8.drop_line": "document@ whose lines that are no UTF-8 were left out",
    "not_finite.": "number@ of {} that JSON does not have (NaN, infinite) and that became null",
    "invalid_utf8.replace": "document@ with bytes that are no UTF-8, replaced by U+FFFD",
    "truncated.": "document@ cut off by the crawler ({})",
}
"""By the name of a count, or what it begins with; ``@`` is an s where there are many."""


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts of ingest beside documents, in words; counts of a user's own reader keep their names."""
    texts = [_in_words(name, number) for name, number in counts.items() if name != "documents" and number]
    return ", ".join(texts)


def _in_words(name: str, number: int) -> str:
    for key in sorted(_WORDS, key=len, reverse=True):
        if name == key or (key[-1] in "._" and name.startswith(key)):
            words = _WORDS[key].replace("@", "s" if number != 1 else "")
            rest = name.removeprefix(key)
            return f"{number:,} {words.replace('{}', rest if key == 'not_finite.' else rest.replace('_', ' '))}"
    return f"{name}: {number:,}"


def ingested(datasets: Iterable[Dataset]) -> list[Ingested]:
    """Return the inputs of datasets, those of the same settings together; files that are read in place are some."""
    results: dict[bytes, list[InputRecord]] = {}
    listed = []
    for dataset in dict.fromkeys(datasets):
        if dataset.in_place:
            listed.append(_read_in_place(dataset, dataset.in_place))
        for _, record in load_all(dataset):
            results.setdefault(msgspec.json.encode(record.settings, order="sorted"), []).append(record)
    for same in results.values():
        counts = Counter[str]()
        for record in same:
            counts.update(record.counts)
        listed.append(
            Ingested(
                names=sorted({os.path.basename(path) for record in same for path in record.paths}),
                crawls=sorted({crawl for record in same for crawl in folders.NAMES.findall("\n".join(record.paths))}),
                settings=same[0].settings,
                documents=sum(record.rows for record in same),
                counts=dict(sorted(counts.items())),
            )
        )
    return listed


def _read_in_place(dataset: Dataset, in_place: InPlace) -> Ingested:
    """Return the files of an in-place dataset, and documents read so far."""
    shards = dataset.shards()
    counts = row_index.counts(dataset, shards)
    files = [dataset.shard_path(shard) for shard in shards]
    return Ingested(
        names=sorted({os.path.basename(file) for file in files}),
        crawls=sorted(set(folders.NAMES.findall("\n".join(files)))),
        settings=in_place.settings(),
        documents=counts.get("documents", 0),
        counts=counts,
        in_place=True,
    )


def tagged_sets(dataset: Dataset) -> list[Tagged]:
    """Return the keys of all sets of a dataset."""
    listed = []
    for name in dataset.sets():
        set_schema = sets.load_schema(dataset, name)
        if set_schema is None:
            listed.append(Tagged(name, "", None))
            continue
        names = sets.load_models(dataset, name)
        listed += [
            Tagged(name, key, _made_by(key_schema.settings, names)) for key, key_schema in set_schema.keys.items()
        ]
    return listed


def mixed_sets(manifest: Manifest, writer: Writer) -> list[Tagged]:
    """Return the keys of a mix's sets, by its manifest. A join without effect does not count."""
    streams = manifest.settings["streams"]
    rules = [rule for stream in streams for rule in stream["rules"]]
    written = [value.path for value in writer.wants().values()]
    written += [_text(rule) for rule in rules if kind_called(str(rule.get("kind"))).ROLE in _WRITE]
    read = [*map(_text, rules), str(writer.label() or ""), str(manifest.settings.get("label") or "")]
    whole = writer.takes_all() or bool(manifest.settings.get("provenance"))
    reads_all = any(kind_called(str(rule.get("kind"))).READS_ALL for rule in rules)
    listed = []
    for name, keys in manifest.sets.items():
        for key in keys:
            settings: dict[str, Any] | None = key.get("settings") or None
            made_by = _made_by(settings, manifest.models) if settings else None
            in_rows = whole or any(names_key(text, key["name"]) for text in written)
            if in_rows or reads_all or any(names_key(text, key["name"]) for text in read):
                listed.append(Tagged(name, key["key"] if settings else "", made_by, in_rows))
    results: dict[tuple[str, str], Tagged] = {}
    for item in listed:
        before = results.get((item.set, item.key))
        results[item.set, item.key] = item if before is None or item.in_rows else before
    return list(results.values())


def mixed_taggers(manifest: Manifest) -> dict[str, str]:
    """Return the taggers of all joined attributes, by the names in rules."""
    keys = (key for keys in manifest.sets.values() for key in keys)
    return {key["name"]: str((key.get("settings") or {}).get("tagger", "")) for key in keys}


_WRITE = (Role.ANNOTATES, Role.SETS)
"""Rules by which something of what they read gets into the rows."""


def _text(rule: Mapping[str, Any]) -> str:
    return msgspec.json.encode(rule).decode()


def names_key(text: str, key: str) -> bool:
    """Return true if an expression, or a path, names a key."""
    return re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", text) is not None


_KNOWN = {digest: name for name, digest in models.SHA256.items()}


def _made_by(settings: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a tagger's settings with model names and without folders."""
    options = settings.get("options") or {}
    named = {
        option: {"name": name, **value}
        for option, value in options.items()
        if isinstance(value, dict) and value.keys() == {"sha256"}
        if (name := names.get(value["sha256"]) or _KNOWN.get(value["sha256"]))
    }
    results = dict(settings)
    if "tagger" in results:
        results["tagger"] = re.sub(r"^.*/(?=[^/]+\.py:)", "", results["tagger"])
    return results | ({"options": options | named} if named else {})


def cleared(dataset: Dataset) -> ClearedDocuments | None:
    """Return the takedowns of a dataset; None without any."""
    lists = takedown.lists_of(dataset)
    shards = takedown.load_all(dataset).values()
    return ClearedDocuments(lists, sum(len(shard.documents) for shard in shards)) if lists else None


def dropped(mixed: Mixture) -> ClearedDocuments | None:
    """Return the effect of takedowns on a mix; None without any."""
    rules = [(effect.documents, rule["files"]) for effect, rule in mixed.rules if rule.get("cleared")]
    lists = sorted({digest for _, digests in rules for digest in digests})
    return ClearedDocuments(lists, sum(documents for documents, _ in rules)) if rules else None


def mixture(manifest: Manifest) -> Mixture:
    """Return the work of a mix, by its manifest."""
    streams = manifest.settings["streams"]
    by_name = {(stream["name"], rule["name"]): rule for stream in streams for rule in stream["rules"]}
    return Mixture(
        toolkit=manifest.toolkit,
        format=manifest.settings["format"],
        options=manifest.settings["options"],
        totals=manifest.totals,
        rules=[(effect, by_name.get((effect.stream, effect.name), {})) for effect in manifest.rules],
        counts=manifest.counts,
        omitted=sorted(manifest.omitted),
        statistics=manifest.statistics,
    )


# --- in words ---------------------------------------------------------------------------------------------------------

_NAMES = 5
"""Inputs that are named."""


def rai_terms(facts: Facts, about: About) -> dict[str, Any]:
    """Return the terms with their values; what the YAML gives stands in place of what records tell."""
    results: dict[str, Any] = {}
    if facts.ingested:
        results["dataCollection"] = " ".join(map(collection, facts.ingested))
    if facts.crawls:
        named = f"The metadata of documents name {', '.join(facts.crawls)}."
        results["dataCollection"] = f"{results['dataCollection']} {named}" if facts.ingested else named
    if facts.crawled:
        results |= _records(facts)
    if result := steps(facts):
        results["dataPreprocessingProtocol"] = result
    rules = facts.mixture.rules if facts.mixture else []
    if edits := [_rule(effect, rule) for effect, rule in rules if kind_called(effect.kind).ROLE is Role.EDITS]:
        results["dataManipulationProtocol"] = " ".join(edits)
    if protocol := _protocol(facts):
        results["dataAnnotationProtocol"] = protocol
    if tools := tools_of(facts):
        results["machineAnnotationTools"] = tools
    results |= about.rai.terms()
    return {f"rai:{name}": value for name, value in results.items()}


def collection(entry: Ingested) -> str:
    """Return the inputs of the same settings in a sentence."""
    format_, source = entry.settings["format"], entry.settings.get("source")
    inputs = amount(len(entry.names), "input")
    crawls = f" of {', '.join(entry.crawls)}" if entry.crawls else ""
    names = ", ".join(entry.names[:_NAMES]) + (", …" if len(entry.names) > _NAMES else "")
    about = f" as source {source}" if source else ""
    return f"{amount(entry.documents, 'document')}{about} from {inputs}{crawls} in the format {format_} ({names})."


def _records(facts: Facts) -> dict[str, Any]:
    """Return the terms about WARC records, of all or some sources."""
    all_of_them = sum(item.documents for item in facts.crawled.values()) == facts.rows
    dates = [date for item in facts.crawled.values() for date in item.dates or ()]
    results: dict[str, Any] = {}
    if all_of_them and dates:
        results["dataCollectionTimeframe"] = list(dict.fromkeys((min(dates), max(dates))))
    texts = []
    for source, item in list(facts.crawled.items())[:_NAMES]:
        headers = f"; kept of their headers: {', '.join(item.headers)}" if 0 < len(item.headers) <= KEYS else ""
        if all_of_them and len(facts.crawled) == 1:
            texts.append(f"WARC records{headers}.")
            continue
        about = ", among the documents that were looked at"
        if facts.rows is not None:
            when = f", made {item.dates[0]} to {item.dates[1]}" if item.dates else ""
            about = f": {amount(item.documents, 'document')}{when}"
        texts.append(f"WARC records{f' of source {source}' if source else ''}{about}{headers}.")
    if (more := len(facts.crawled) - _NAMES) > 0:
        texts.append(f"WARC records of {more:,} more sources.")
    return results | {"dataCollectionRawData": " ".join(texts)}


def _protocol(facts: Facts) -> str:
    """Return a sentence on the recorded origin of the attributes."""
    tagged = [item for item in facts.tagged if item.in_rows]
    results = list(dict.fromkeys(item.set for item in tagged if _software(item.made_by or {})))
    unrecorded = list(dict.fromkeys(item.set for item in tagged if not _software(item.made_by or {})))
    texts = [f"The attributes {', '.join(results)} were made by software."] if results else []
    texts += [f"How the attributes {', '.join(unrecorded)} were made is not recorded."] if unrecorded else []
    return " ".join(texts)


def _ingest(entry: Ingested) -> str:
    settings = dict(entry.settings)
    format_ = settings.pop("format")
    about = f" ({counts})" if (counts := counted(entry.counts)) else ""
    verb = "read in place" if entry.in_place else "ingest"
    return f"{verb} {format_}{_options(settings)}: {amount(entry.documents, 'document')}{about}."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if name != "documents")


def _options(options: Mapping[str, Any]) -> str:
    texts = [f"{name}: {_value(value)}" for name, value in options.items() if value not in (None, {}, [], "")]
    return f" ({', '.join(texts)})" if texts else ""


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _software(made_by: Mapping[str, Any]) -> str | None:
    """Return an attribute's tagger, or its set's kind, such as ``near``; None without either."""
    result = made_by.get("tagger") or made_by.get("kind")
    return None if result is None else str(result)


def _tagger(made_by: Mapping[str, Any]) -> str:
    name = _software(made_by)
    if name is None and "align" in made_by:
        return f"matched by id from external files, format {made_by['align'].get('format')}"
    if name is None:
        return f"carried by the input, format {made_by.get('format')}"
    options = dict(made_by.get("options") or {}) | {"when": made_by.get("when")}
    result = f"{name}, version {made_by.get('version')}{_options(options)}"
    return f"{result}, over the text without the spans {made_by['without']}" if "without" in made_by else result


def tools_of(facts: Facts) -> list[str]:
    """Return the rows' taggers and kinds of sets, with versions and options."""
    results = [item.made_by for item in facts.tagged if item.in_rows and item.made_by and _software(item.made_by)]
    return list(dict.fromkeys(map(_tagger, results)))


def steps(facts: Facts, *, rules: bool = True) -> list[str]:
    """Return the steps of the work, in order.

    Args:
        facts: Facts of a dataset or an output.
        rules: True if each rule of the mix is a step.
    """
    steps = [_ingest(item) for item in facts.ingested]
    for item in facts.tagged:
        if item.made_by is None:
            steps.append(f"attributes {item.set}: how they were made is not recorded.")
        else:
            read = "" if item.in_rows else "; read by rules"
            steps.append(f"attributes {item.set}, {item.key}: {_tagger(item.made_by)}{read}.")
    mixed = facts.mixture
    if mixed is None:
        return steps
    steps += [_rule(effect, settings) for effect, settings in mixed.rules if rules]
    counts = f"; {result}" if (result := _counts(mixed.counts)) else ""
    steps.append(
        f"mix: {mixed.totals.kept:,} of {amount(mixed.totals.rows, 'document')} kept, {mixed.totals.kept_chars:,} of "
        f"{amount(mixed.totals.chars, 'character')}{mixed.totals.repeated}; "
        f"written as {mixed.format}{_options(mixed.options)}{counts}."
    )
    if mixed.omitted:
        steps.append(f"mix: left out because they failed: {', '.join(mixed.omitted)}.")
    return steps


def _rule(effect: RuleEffect, settings: Mapping[str, Any]) -> str:
    stream = f" of {effect.stream}" if effect.stream else ""
    options = {name: value for name, value in settings.items() if name not in ("name", "kind", "expression", "group")}
    expression = f" {settings['expression']}" if settings.get("expression") else ""
    effects = f"{kind_called(effect.kind).ROLE.participle} {effect.documents:,} of {amount(effect.reached, 'document')}"
    effects += f", {amount(effect.chars, 'character')}"
    return f"rule {effect.name}{stream}: {effect.kind}{expression}{_options(options)}; {effects}."


# --- provenance -------------------------------------------------------------------------------------------------------


def prov_terms(facts: Facts) -> dict[str, Any]:
    """Return the sources and steps of the data as PROV-O; without times, because records have none."""
    crawls = sorted({crawl for item in facts.ingested for crawl in item.crawls} | {*facts.crawls})
    entities = [
        {
            "@type": "prov:Entity",
            "@id": f"https://data.commoncrawl.org/crawl-data/{_folder(crawl)}/",
            "prov:label": crawl,
        }
        for crawl in crawls
    ]
    names = ["ingest"] if facts.ingested else []
    names += list(dict.fromkeys(f"tag {item.set}" for item in facts.tagged if "tagger" in (item.made_by or {})))
    names += ["mix"] if facts.mixture else []
    version = f" {facts.mixture.toolkit}" if facts.mixture else ""
    agent = {"@type": "prov:SoftwareAgent", "@id": f"agent/{NAME}", "prov:label": f"{NAME}{version}"}
    activities = [
        {
            "@type": "prov:Activity",
            "@id": "activity/" + name.replace(" ", "/"),
            "prov:label": name,
            "prov:wasAssociatedWith": agent if not i else {"@id": agent["@id"]},
        }
        for i, name in enumerate(names)
    ]
    results: dict[str, Any] = {"prov:wasDerivedFrom": entities} if entities else {}
    return results | ({"prov:wasGeneratedBy": activities} if activities else {})


def _folder(crawl: str) -> str:
    """Return the folder of a crawl in the bucket. News have one for each month of a year."""
    kind, name, *date = crawl.split("-")
    return "/".join((f"{kind}-{name}", *date)) if name == "NEWS" else crawl
