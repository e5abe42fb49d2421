"""Terms of the RAI vocabulary, and provenance: how the data came about, in words, by the records of the runs.

Source: Croissant RAI Vocabulary 1.0 (docs.mlcommons.org/croissant); PROV-O.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.distribution import NAME
from toolkit.errors import amount
from toolkit.inspect.describe.about import About
from toolkit.inspect.describe.facts import Facts, Ingested
from toolkit.inspect.describe.ingest_counts import counted
from toolkit.mix.effects.counts import RuleEffect
from toolkit.rules import Role, kind_called

_NAMES = 5
"""Inputs that are named."""


def rai_terms(facts: Facts, about: About) -> dict[str, Any]:
    """Return the terms with their values; what the YAML gives stands in place of what records tell."""
    found: dict[str, Any] = {}
    if facts.ingested:
        found["dataCollection"] = " ".join(_collection(each) for each in facts.ingested)
    if facts.crawls:
        named = f"The metadata of documents name {', '.join(facts.crawls)}."
        found["dataCollection"] = f"{found['dataCollection']} {named}" if facts.ingested else named
    if facts.crawled:
        found |= _records(facts)
    if made := steps(facts):
        found["dataPreprocessingProtocol"] = made
    rules = facts.mixture.rules if facts.mixture else []
    if edits := [_rule(effect, given) for effect, given in rules if kind_called(effect.kind).ROLE is Role.EDITS]:
        found["dataManipulationProtocol"] = " ".join(edits)
    if protocol := _protocol(facts):
        found["dataAnnotationProtocol"] = protocol
    if tools := tools_of(facts):
        found["machineAnnotationTools"] = tools
    found |= about.rai.given()
    return {f"rai:{name}": value for name, value in found.items()}


def _collection(each: Ingested) -> str:
    settings = dict(each.settings)
    format_, source = settings.pop("format"), settings.pop("source", None)
    inputs = amount(len(each.names), "input")
    crawls = f" of {', '.join(each.crawls)}" if each.crawls else ""
    names = ", ".join(each.names[:_NAMES]) + (", …" if len(each.names) > _NAMES else "")
    about = f" as source {source}" if source else ""
    return f"{amount(each.documents, 'document')}{about} from {inputs}{crawls} in the format {format_} ({names})."


def _records(facts: Facts) -> dict[str, Any]:
    """Return the terms that tell of WARC records, which all documents come from, or those of some sources."""
    all_of_them = sum(each.documents for each in facts.crawled) == facts.rows
    dates = [date for each in facts.crawled for date in each.dates or ()]
    found: dict[str, Any] = {}
    if all_of_them and dates:
        found["dataCollectionTimeframe"] = list(dict.fromkeys((min(dates), max(dates))))
    if all_of_them and len(facts.crawled) == 1:
        (only,) = facts.crawled
        return found | {"dataCollectionRawData": f"WARC records{_kept(only.headers)}."}
    told = []
    for each in facts.crawled[:_NAMES]:
        of = f" of source {each.source}" if each.source else ""
        if facts.rows is None:
            told.append(f"WARC records{of}, among the documents that were looked at{_kept(each.headers)}.")
            continue
        number = amount(each.documents, "document")
        when = f", made {each.dates[0]} to {each.dates[1]}" if each.dates else ""
        told.append(f"WARC records{of}: {number}{when}{_kept(each.headers)}.")
    if others := facts.crawled[_NAMES:]:
        told.append(f"WARC records of {len(others):,} more sources.")
    return found | {"dataCollectionRawData": " ".join(told)}


def _kept(headers: Sequence[str]) -> str:
    return f"; kept of their headers: {', '.join(headers)}" if headers else ""


def _protocol(facts: Facts) -> str:
    """Return which attributes software made, by the records; of others it is not known."""
    tagged = [each for each in facts.tagged if each.in_rows]
    made = list(dict.fromkeys(each.set for each in tagged if _software(each.made_by or {})))
    others = list(dict.fromkeys(each.set for each in tagged if not _software(each.made_by or {})))
    told = [f"The attributes {', '.join(made)} were made by software."] if made else []
    told += [f"How the attributes {', '.join(others)} were made is not recorded."] if others else []
    return " ".join(told)


def _ingest(each: Ingested) -> str:
    settings = dict(each.settings)
    format_ = settings.pop("format")
    about = f" ({counts})" if (counts := counted(each.counts)) else ""
    done = "read in place" if each.in_place else "ingest"
    return f"{done} {format_}{_options(settings)}: {amount(each.documents, 'document')}{about}."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if name != "documents")


def _options(options: Mapping[str, Any]) -> str:
    given = [f"{name}: {_value(value)}" for name, value in options.items() if value not in (None, {}, [], "")]
    return f" ({', '.join(given)})" if given else ""


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _software(made_by: Mapping[str, Any]) -> str | None:
    """Return the tagger that made an attribute, or the kind of its set, such as ``near``; None if neither did."""
    found = made_by.get("tagger") or made_by.get("kind")
    return None if found is None else str(found)


def _tagger(made_by: Mapping[str, Any]) -> str:
    name = _software(made_by)
    if name is None and "align" in made_by:
        return f"matched by id from files of others, format {made_by['align'].get('format')}"
    if name is None:
        return f"carried by the input, format {made_by.get('format')}"
    options = dict(made_by.get("options") or {}) | {"when": made_by.get("when")}
    found = f"{name}, version {made_by.get('version')}{_options(options)}"
    return f"{found}, over the text without the spans {made_by['without']}" if "without" in made_by else found


def tools_of(facts: Facts) -> list[str]:
    """Return the taggers, and kinds of sets, of what is in the rows, with versions, options and models."""
    made = [each.made_by for each in facts.tagged if each.in_rows and each.made_by and _software(each.made_by)]
    return list(dict.fromkeys(map(_tagger, made)))


def steps(facts: Facts, *, rules: bool = True) -> list[str]:
    """Return the steps that were taken, in order.

    Args:
        facts: of a dataset or an output.
        rules: whether each rule of the mix is a step.
    """
    steps = [_ingest(each) for each in facts.ingested]
    for each in facts.tagged:
        if each.made_by is None:
            steps.append(f"attributes {each.set}: how they were made is not recorded.")
        else:
            read = "" if each.in_rows else "; read by rules"
            steps.append(f"attributes {each.set}, {each.key}: {_tagger(each.made_by)}{read}.")
    mixed = facts.mixture
    if mixed is None:
        return steps
    steps += [_rule(effect, settings) for effect, settings in mixed.rules if rules]
    counts = f"; {found}" if (found := _counts(mixed.counts)) else ""
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
    shown = {name: value for name, value in settings.items() if name not in ("name", "kind", "expression", "group")}
    what = f" {settings['expression']}" if settings.get("expression") else ""
    done = f"{kind_called(effect.kind).ROLE.done} {effect.documents:,} of {amount(effect.reached, 'document')}"
    done += f", {amount(effect.chars, 'character')}"
    return f"rule {effect.name}{stream}: {effect.kind}{what}{_options(shown)}; {done}."


# --- provenance -------------------------------------------------------------------------------------------------------


def provenance(facts: Facts) -> dict[str, Any]:
    """Return what the data were derived from, and by which steps; without times, which records do not have."""
    crawls = sorted({crawl for each in facts.ingested for crawl in each.crawls} | {*facts.crawls})
    entities = [
        {
            "@type": "prov:Entity",
            "@id": f"https://data.commoncrawl.org/crawl-data/{_folder(crawl)}/",
            "prov:label": crawl,
        }
        for crawl in crawls
    ]
    names = ["ingest"] if facts.ingested else []
    names += list(dict.fromkeys(f"tag {each.set}" for each in facts.tagged if "tagger" in (each.made_by or {})))
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
    found: dict[str, Any] = {"prov:wasDerivedFrom": entities} if entities else {}
    return found | ({"prov:wasGeneratedBy": activities} if activities else {})


def _folder(crawl: str) -> str:
    """Return the folder of a crawl below that of all crawls; news have one for each month of a year."""
    kind, name, *date = crawl.split("-")
    return "/".join((f"{kind}-{name}", *date)) if name == "NEWS" else crawl
