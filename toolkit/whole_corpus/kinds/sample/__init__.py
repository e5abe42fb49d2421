"""Samples: exactly so many documents, of all or by strata, the same ones whenever they are drawn again."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct, Description
from toolkit.errors import ConfigError, DataError
from toolkit.exchange.sealed import write_sealed
from toolkit.exchange.thresholds import in_groups
from toolkit.rules.rule import document_hash
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus import expressions
from toolkit.whole_corpus.expressions import Labels
from toolkit.whole_corpus.kind import Asked, Block, Files, Kind, Resolved, Signer, Work
from toolkit.whole_corpus.kinds.sample import choosing
from toolkit.whole_corpus.kinds.sample.choosing import (
    OUT,
    Chosen,
    Quota,
    Rows,
    SampleKeys,
    Short,
    Strata,
    choose,
    strata_of,
)
from toolkit.whole_corpus.records import SignedShard

SUFFIXES = (".jsonl.gz", ".jsonl.zst", ".jsonl")

_SHOWN = 20
_FOUND = "chosen.json"


class Sampled(msgspec.Struct, frozen=True):
    """Whether a document is in the sample.

    Attributes:
        chosen: True if it is.
        stratum: The value of `by`, as text; null without `by`, and of a document that could not be chosen.
        split: The split that it is in; null without `splits`, and of a document that is not chosen.
    """

    chosen: bool
    stratum: str | None
    split: str | None


class Copy(ConfigStruct):
    """Where the chosen documents are copied to, as they are.

    Attributes:
        path: a file, or with `layout: inputs` a folder.
        layout: one file; or one for each shard under its own relative path, none for one of which nothing is chosen.
        index: True if an ``.idx`` is written beside each file: offset and length of each line; in a compressed file
            each line is a member of its own, and these are those of the members.
    """

    path: str
    layout: Literal["one", "inputs"] = "one"
    index: bool = False


class Sample(Kind, kw_only=True):
    """Documents drawn at random."""

    SECTION: ClassVar[str] = "sample"

    TEXTS: ClassVar[bool] = False

    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"ids", "copy"})

    documents: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None, Description(description="how many documents are chosen")
    ] = None
    share: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=1)] | None,
        Description(description="which share of the documents is chosen, in place of `documents`"),
    ] = None
    by: Annotated[
        str | list[str],
        Description(description="strata: SET.KEY.field or an expression, or a list of such; each has a quota"),
    ] = []
    quota: Annotated[
        Literal["equal", "proportional"] | dict[str, float],
        Description(
            description="what each stratum gives: equal numbers; numbers in proportion to its documents; "
            "{LABEL: documents}, or {LABEL: share} with `documents` or `share`"
        ),
    ] = "equal"
    short: Annotated[
        Short | None,
        Description(
            description="if a stratum has too few documents: others give them (redistribute), or nobody "
            "does (report); by default redistribute, but report for given numbers"
        ),
    ] = None
    weight: Annotated[
        str | None,
        Description(
            description="an expression that gives 0 or more: a document with twice the weight is twice as likely drawn"
        ),
    ] = None
    seed: Annotated[str | int, Description(description="another seed draws another sample")] = ""
    splits: Annotated[
        dict[str, float],
        Description(
            description="{NAME: SHARE}: divides the chosen documents into splits with these shares, which add up to 1"
        ),
    ] = {}
    split_by: Annotated[
        str | None,
        Description(description="an expression: documents with the same value are in the same split; default: the id"),
    ] = None
    ids: Annotated[
        str | None,
        Description(description="a file to write: a line of JSON with source and id for each chosen document"),
    ] = None
    copy_: Annotated[
        Copy | None,
        Description(description="{path, layout: one | inputs, index}: where the chosen documents are copied to"),
    ] = msgspec.field(name="copy", default=None)

    def check(self) -> None:
        """Raise ConfigError for options that do not go together."""
        for path in (self.ids, self.copy_.path if self.copy_ else None):
            if path is not None and not path.strip():
                raise ConfigError("expected a path, got none")
        if self.copy_ and self.copy_.layout == "one" and not self.copy_.path.endswith(SUFFIXES):
            raise ConfigError(f"copy: expected a file ending in {' '.join(SUFFIXES)}, got {self.copy_.path}")
        given = isinstance(self.quota, dict)
        if given and not self.by:
            raise ConfigError("quota: expected `by:` beside it, which says what the strata are, got none")
        if self.documents is not None and self.share is not None:
            raise ConfigError("expected `documents` or `share`, got both")
        if self.documents is None and self.share is None and not given:
            raise ConfigError("expected `documents: N` or `share: P`, got neither")
        if isinstance(self.quota, dict):
            _check_quota(self.quota, of_whole=self.documents is not None or self.share is not None)
        if self.splits and not math.isclose(sum(self.splits.values()), 1.0, abs_tol=1e-9):
            raise ConfigError(f"splits: expected shares that add up to 1, got {sum(self.splits.values()):g}")
        if any(share < 0 for share in self.splits.values()) or len(self.splits) > 255:
            raise ConfigError("splits: expected at most 255 shares, none below 0")
        if self.split_by is not None and not self.splits:
            raise ConfigError("split_by: expected `splits:` beside it, got none")

    def value_type(self) -> Any:
        """Return the type of the values."""
        return Sampled

    def asked(self) -> dict[str, Asked]:
        """Return the expressions of the options."""
        results = {f"by {i}": Asked(text, "value") for i, text in enumerate(self.strata)}
        if self.weight is not None:
            results["weight"] = Asked(self.weight, "number")
        if self.split_by is not None:
            results["split_by"] = Asked(self.split_by, "value")
        return results

    @property
    def strata(self) -> list[str]:
        """Return the expressions of `by`."""
        return [self.by] if isinstance(self.by, str) else self.by

    def signer(self, files: Files) -> Signer:
        """Return what writes the keys of a shard."""
        return _Keys(self, files)

    def resolve(self, work: Work) -> Resolved:
        """Choose, in tasks that read the keys of shards, and nothing else."""
        result = _choose(self, work)
        write_file(join(work.folder, _FOUND), msgspec.json.encode(result))
        digests = {
            shard.shard: msgspec.json.encode(
                [_of_shard(shard, result), shard.record.files[choosing.FILE].sha256]
            ).decode()
            for shard in work.shards
        }
        return Resolved(digests, result.counts, result.notes)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield whether each document is chosen."""
        path = join(fates, _FOUND)
        result = msgspec.json.decode(store_of(path).read(path), type=Found)
        kept, expressions = choosing.load(signed), strata_of(signed).labels
        chosen = _chosen(kept, _of_shard(signed, result))
        splits = [*self.splits, None]
        for is_chosen, stratum, split in zip(chosen.tolist(), kept.strata.tolist(), kept.splits.tolist(), strict=True):
            label = expressions[stratum] if self.by and stratum != OUT else None
            yield Sampled(is_chosen, label, splits[split] if is_chosen else None)


def _check_quota(quota: Mapping[str, float], *, of_whole: bool) -> None:
    if not quota or any(item < 0 for item in quota.values()):
        raise ConfigError("quota: expected at least one label, and no number below 0")
    whole = sum(quota.values())
    if of_whole and not math.isclose(whole, 1.0, abs_tol=1e-9):
        raise ConfigError(
            f"quota: expected shares that add up to 1, because `documents` or `share` is given, got "
            f"a sum of {whole:g}; if these are numbers of documents, leave `documents` and `share` out"
        )
    if not of_whole and any(item != int(item) for item in quota.values()):
        raise ConfigError(
            "quota: expected whole numbers of documents, got fractions; if these are shares, add "
            "`documents: N` or `share: P`"
        )


# --- per shard --------------------------------------------------------------------------------------------------------


class _Keys(Signer):
    """Writes the keys, strata and splits of a shard's rows."""

    kind: Sample

    def __init__(self, kind: Sample, files: Files) -> None:
        super().__init__(kind, files)
        self._seed = str(kind.seed)
        self._parts: list[Rows] = []
        self._labels = Labels("by", "strata")
        self._bounds = np.cumsum([*kind.splits.values()])

    def add(self, block: Block) -> None:
        """Take the next documents."""
        kind, seed, competes = self.kind, self._seed, block.competes
        rows = [*zip(block.documents, competes, strict=True)]
        keys = [document_hash(seed, document) if mine else 0 for document, mine in rows]
        counts = competes
        if kind.weight is not None:
            weights = [weight if mine else 0 for weight, mine in zip(block.values["weight"], competes, strict=True)]
            for i, weight in enumerate(weights):
                if not 0 <= weight < math.inf:
                    raise DataError(
                        f"weight: expected a number of 0 or more, got {weight!r}", line=block.first + i + 1,
                        id=block.documents[i].id,
                    )  # fmt: skip
                if weight:
                    keys[i] = choosing.weighted_key(keys[i], weight)
            counts = [weight > 0 for weight in weights]
        strata = self._labels.numbers([block.values[f"by {i}"] for i in range(len(kind.strata))], counts, OUT)
        splits = [len(kind.splits)] * len(rows)
        for i, (document, mine) in enumerate(rows) if kind.splits else ():
            if mine:
                own = kind.split_by is not None
                value = block.values["split_by"][i] if own else (document.source, document.id)
                splits[i] = choosing.split_of(seed, value, self._bounds)
        parts = zip((keys, strata, splits), (np.uint64, np.uint32, np.uint8), strict=True)
        self._parts.append(Rows(*(np.array(column, dtype=type_) for column, type_ in parts)))

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the file; return how many documents can be chosen, and the strata."""
        nothing = Rows(*[np.zeros(0, np.uint32)] * 3)
        kept = Rows(*map(np.concatenate, zip(*(self._parts or [nothing]), strict=True)))
        self.files.open(choosing.FILE).write(choosing.packed(kept))
        counts = np.bincount(kept.strata[kept.strata != OUT], minlength=len(self._labels.all)).tolist()
        return {"pool": sum(counts)}, Strata(self._labels.all, counts)


# --- the whole --------------------------------------------------------------------------------------------------------


class Found(msgspec.Struct, frozen=True):
    """The chosen documents.

    Attributes:
        strata: what is chosen of each, by label.
        quotas: Quotas of each, by label.
        counts: for people.
        notes: for people.
    """

    strata: dict[str, Chosen]
    choosing: dict[str, Quota]
    counts: dict[str, int]
    notes: list[str]


def _choose(kind: Sample, work: Work) -> Found:
    there: Counter[str] = Counter()
    for signed in work.shards:
        there.update(dict(zip(*strata_of(signed), strict=True)))
    if len(there) > expressions.MOST:
        raise DataError(f"by: expected at most {expressions.MOST:,} strata, got {len(there):,}")
    labels = sorted(there)
    allotted = allot(kind, there)
    wanted = [allotted[label].given if label in allotted else 0 for label in labels]
    write_sealed(path := join(work.scratch, "labels"), msgspec.msgpack.encode(labels))
    shards, groups = work.all(), in_groups(signed.record.rows for signed in work.shards)
    ranges = [msgspec.structs.replace(shards, first=first, last=last) for first, last in groups]
    sources = [SampleKeys(shards=range, labels=path) for range in ranges]
    chosen = choose(work.run, work.folder, sources, [there[label] for label in labels], wanted, work.memory)
    counts = {"chosen": sum(wanted), "to choose from": sum(there.values())}
    if kind.by:
        counts["strata"] = len(labels)
    return Found(dict(zip(labels, chosen, strict=True)), allotted, counts, _notes(kind, allotted, there))


def allot(kind: Sample, there: Mapping[str, int]) -> dict[str, Quota]:
    """Return what each stratum gives; `there` is how many documents each has."""
    pool = sum(there.values())
    if isinstance(kind.quota, dict) and kind.documents is None and kind.share is None:
        numbers = {label: int(number) for label, number in kind.quota.items()}
        return choosing.by_numbers(there, numbers, kind.short or "report")
    total = kind.documents if kind.documents is not None else int((kind.share or 0) * pool + 0.5)
    short = kind.short or "redistribute"
    if isinstance(kind.quota, dict):
        weights = {label: Fraction(str(share)) for label, share in kind.quota.items()}
        return choosing.by_weights(there, weights, total, short)
    if kind.quota == "proportional":
        return choosing.proportional(there, total)
    return choosing.equal(there, total, short)


def _notes(kind: Sample, allotted: Mapping[str, Quota], there: Mapping[str, int]) -> list[str]:
    """Return what is to be said of strata that have too few documents."""
    short = choosing.missing(allotted)
    wanted = sum(item.wanted for item in allotted.values())
    given = sum(item.given for item in allotted.values())
    if kind.documents is not None:  # without any document there are no strata that could lack some
        wanted = kind.documents
    notes = []
    if given < wanted:
        notes.append(f"{wanted - given:,} documents of {wanted:,} are missing: there are no more")
    if short and kind.by:
        listed = ", ".join(f"{label} {there.get(label, 0):,} of {allotted[label].wanted:,}" for label in short[:_SHOWN])
        more = f" and {len(short) - _SHOWN} more" if len(short) > _SHOWN else ""
        notes.append(f"strata with fewer documents than their quota: {listed}{more}")
    return notes


def _of_shard(signed: SignedShard, found: Found) -> list[tuple[int, list[int]]]:
    """Return the bound of each stratum of a shard, in its order, and its rows that have the very bound."""
    return [
        (bound.below, [row for shard, row in bound.ties if shard == signed.number])
        for bound in (found.strata[label] for label in strata_of(signed).labels)
    ]


def _chosen(kept: Rows, bounds: list[tuple[int, list[int]]]) -> Array:
    """Return of each row of a shard whether it is chosen."""
    result = np.zeros(len(kept.keys), dtype=bool)
    for stratum, (below, ties) in enumerate(bounds):
        mine = kept.strata == stratum
        result |= mine & (kept.keys <= np.uint64(below - 1) if below else False)
        result[ties] = True
    return result
