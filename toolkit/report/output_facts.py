"""The facts of an output, and reasons for missing ones. They are those of its manifest and the records."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.config import settings as config
from toolkit.config.redaction import conceal
from toolkit.data.dataset import Dataset
from toolkit.distribution import NAME, VERSION
from toolkit.errors import ConfigError
from toolkit.mix import publication
from toolkit.mix.join import JoinedSet
from toolkit.mix.publication import BudgetFound, Manifest
from toolkit.mix.rule_effects.counts import GroupCount, RuleCount
from toolkit.records import ingested, left_out, sets as records
from toolkit.report import facts
from toolkit.report.facts import Input, Language, Model, Named, SetMade, StageWork
from toolkit.rules.kinds import kind_called
from toolkit.storage.paths import not_in
from toolkit.text.counting import Counts
from toolkit.text.languages import tables


def languages_of(labels: Iterable[str]) -> dict[str, Language]:
    """Return the names of languages, with their scripts; a label that is none is its own name."""
    results = {}
    for label in sorted(set(labels)):
        language = tables.language(label)
        results[label] = Language(
            name=language.title or label, script=language.script, rtl=language.rtl, tag=language.tag or ""
        )
    return results


def came_in(datasets: Iterable[Dataset]) -> list[Input]:
    """Return the inputs of ingest, by source; empty for documents that were there."""
    results: dict[str, Input] = {}
    for dataset in datasets:
        for _, record in ingested.load_all(dataset):
            source = str(record.settings.get("source") or record.entry)
            input_ = results.setdefault(source, Input(source=source))
            input_.inputs += len(record.paths)
            input_.documents += record.rows
            input_.bytes += record.size
            for name, count in record.counts.items():
                if name != "documents" and left_out.read_items({name: 1}):
                    input_.rejected[name] = input_.rejected.get(name, 0) + count
    return [results[source] for source in sorted(results)]


def stages(datasets: Mapping[str, tuple[Dataset, Sequence[JoinedSet], Sequence[str]]]) -> list[StageWork]:
    """Return the work of ingest, and of each joined set, by records.

    Args:
        datasets: Datasets by stream its dataset, the sets that it joins, its shards.
    """
    results: dict[tuple[str, str], StageWork] = {}
    counted = set[str]()
    for dataset, joined, shards in datasets.values():
        if dataset.documents not in counted:
            counted.add(dataset.documents)
            for _, record in ingested.load_all(dataset):
                size = sum(shard.content_size for shard in record.shards.values())
                _add(results, "ingest", "", record.rows, size, record.seconds)
        for item in joined:
            if f"{dataset.attributes}\n{item.set}" in counted or not item.ours:
                continue
            counted.add(f"{dataset.attributes}\n{item.set}")
            command = records.command_of(dataset, item.set)
            for shard in shards:
                if shard_record := records.load_record(dataset, item.set, shard):
                    _add(results, command, item.set, shard_record.rows, shard_record.input.bytes, shard_record.seconds)
    return list(results.values())


def _add(
    stages: dict[tuple[str, str], StageWork], stage: str, set_: str, documents: int, size: int, seconds: float
) -> None:
    item = stages.setdefault((stage, set_), StageWork(stage=stage, set=set_, documents=0, bytes=0, seconds=0.0))
    item.documents += documents
    item.bytes = (item.bytes or 0) + size
    item.seconds = round(item.seconds + seconds, 3)


def sets_made(sets: Mapping[str, Sequence[JoinedSet]]) -> list[SetMade]:
    """Return how the joined sets of each stream were made."""
    return [
        SetMade(
            set=joined.set,
            stream=stream,
            keys={key.name: str(key.declared) for key in joined.keys},
            settings={key.name: key.settings for key in joined.keys if key.settings is not None},
        )
        for stream, listed in sets.items()
        for joined in listed
    ]


def models(datasets: Iterable[tuple[Dataset, Sequence[JoinedSet]]]) -> list[Model]:
    """Return the models of joined sets, and of their inputs."""
    results: dict[str, str] = {}
    for dataset, joined in datasets:
        names = {name for item in joined if item.ours for name in (item.set, *item.reads)}
        for name in sorted(names):
            results |= records.load_models(dataset, name)
    return [Model(name=name, sha256=digest) for digest, name in sorted(results.items(), key=lambda item: item[::-1])]


def versions(sets: Sequence[SetMade], manifest: Manifest | None, *, here: bool = True) -> list[Named]:
    """Return the versions of the toolkit, of Python, and of taggers.

    The toolkit's are those of now and of the mix; Python's is left out unless it runs here.
    """
    results = {NAME: VERSION, **({"Python": platform.python_version()} if here else {})}
    if manifest and (manifest.toolkit != VERSION or not here):
        results[f"{NAME}, of the mix"] = manifest.toolkit
    for item in sets:
        for settings in item.settings.values():
            if name := tagger_of(settings):
                results[name] = str(settings.get("version", ""))
    return [Named(name=name, version=version) for name, version in results.items() if version]


def tagger_of(settings: Mapping[str, Any]) -> str:
    """Return the origin of a value: its tagger, or the kind of set."""
    return str(settings.get("tagger") or settings.get("kind") or "")


_CONFIGURATION = "give the configuration of its mix with -c"

_WITHOUT = f"the output alone does not say that; {_CONFIGURATION}"

MISSING = {
    "came_in": "inputs are in the records of the dataset",
    "stages": "the seconds of work are in the records of the dataset",
    "groups": "sources and hosts before the mix are in the dataset",
    "lengths": "lengths are counted from the dataset",
    "scores": "attributes are in the dataset",
    "spans": "attributes are in the dataset",
    "duplicates": "attributes are in the dataset",
    "rules.labels": "what rules do by label, and what each of them alone drops, is counted from the dataset",
    "samples": "documents that were dropped are in the dataset",
    "pairs": "near duplicates are in the dataset",
}
"""Parts that a report on an output alone lacks, and why."""


def run_of_output(folder: str, name: str) -> facts.Run:
    """Return the facts of an output.

    Args:
        folder: Folder of the output.
        name: Name of the run.

    Raises:
        ConfigError: if it is none, or is just being written.
    """
    manifest = publication.load_manifest(folder)
    if manifest is None:
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`{not_in(folder)}")
    if publication.is_unfinished(folder):
        raise ConfigError(
            f"{folder}: expected a finished output, got one whose publication is not complete; run "
            f"`toolkit mix` to complete it"
        )
    notes = [f"This is an output without its dataset, so scores, samples and more are missing; {_CONFIGURATION}."]
    if fault := publication.fault_of(folder, manifest):
        notes.append(fault)
    return facts.Run(
        name=name,
        output=folder,
        config=conceal(config.dump(manifest.settings)),
        mixed=True,
        notes=notes,
        missing={part: f"{why}; {_WITHOUT}" for part, why in MISSING.items()},
        versions=versions(_sets(manifest), manifest, here=False),
        models=[facts.Model(name=name, sha256=sha256) for sha256, name in sorted(manifest.models.items())],
        sets=_sets(manifest),
        totals=manifest.totals,
        labels=_labels(manifest),
        rules=_rules(manifest),
        left_out=dict(manifest.counts),
        not_carried=manifest.not_carried,
        budget=budget_of(manifest.budget),
        orphans=[facts.Orphans(**msgspec.structs.asdict(orphan)) for orphan in manifest.orphans],
    )


def _labels(manifest: publication.Manifest) -> list[facts.LabelSizes]:
    label_sizes = [
        facts.LabelSizes(label=label, before=sizes_of(statistic.before), after=sizes_of(statistic.after))
        for label, statistic in manifest.statistics.items()
    ]
    return sorted(label_sizes, key=lambda item: (-item.before.documents, item.label))


def sizes_of(counts: Counts) -> facts.Sizes:
    """Return counts as sizes of texts."""
    names = ("documents", "chars", "bytes", "lines", "words")
    return facts.Sizes(**{name: getattr(counts, name) for name in names})


def _rules(manifest: publication.Manifest) -> list[facts.RuleFacts]:
    """Return the rules as the manifest has counted them; it lists a stream's rules in their order."""
    written = {
        (stream["name"], rule["name"]): rule for stream in manifest.settings["streams"] for rule in stream["rules"]
    }
    results = []
    for effect in manifest.rules:
        rule = written.get((effect.stream, effect.name), {})
        texts = [str(rule.get("expression", "")) or " or ".join(map(str, rule.get("patterns", ())))]
        results.append(
            facts.RuleFacts(
                name=effect.name,
                stream=effect.stream,
                group=effect.group,
                kind=effect.kind,
                expression=" when ".join(text for text in [*texts, str(rule.get("when", ""))] if text),
                role=kind_called(effect.kind).ROLE.verb,
                **{name: getattr(effect, name) for name in RuleCount.__struct_fields__},
            )
        )
    return results


def budget_of(budget: BudgetFound | None, counts: Mapping[str, GroupCount] | None = None) -> facts.Budget | None:
    """Return the result of a budget; counts: of its groups, if they are not those of a mix."""
    if budget is None:
        return None
    groups = []
    for row in budget.groups:
        count = row if counts is None else counts.get(row.group, GroupCount())
        groups.append(
            facts.BudgetGroup(
                group=row.group,
                available=row.available,
                wanted=row.target,
                taken=row.amount,
                documents=count.documents,
                copies=count.copies,
            )
        )
    return facts.Budget(unit=str(budget.unit), redistributed=budget.redistributed, groups=groups)


def _sets(manifest: publication.Manifest) -> list[facts.SetMade]:
    results = []
    for path, keys in manifest.sets.items():
        stream, _, name = path.rpartition("/")
        types = {key["name"]: str(key["type"]) for key in keys}
        settings = {key["name"]: key["settings"] for key in keys if key.get("settings")}
        results.append(facts.SetMade(set=name, stream=stream, keys=types, settings=settings))
    return results
