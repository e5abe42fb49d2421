"""The sections ``dedup:``, ``sample:`` and ``calibrate:``: entries, what these read, and the schemas of their sets."""

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import xxhash

from toolkit.config import settings as config
from toolkit.config.root import recorded_reference
from toolkit.config.scale import Declared, common
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, schema
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.data.documents import DOCUMENT_DECODER, Rows, to_document
from toolkit.errors import ConfigError, DataError, NoDocuments, ToolkitError, UnknownPlugin
from toolkit.ingest.in_place import open_dataset
from toolkit.mix.join import JoinedSet, read_joined, scale_of
from toolkit.plugins import default_name
from toolkit.records import sets as records
from toolkit.records.external_sets import External
from toolkit.records.set_declaration import declare_set, digest_of, what_to_declare
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import A_NAME, check_form, is_name
from toolkit.rules.text_edits import edits_in, read_edits
from toolkit.source import AvailableSets
from toolkit.storage.json_files import json_digest
from toolkit.storage.paths import absolute, is_set_name, join
from toolkit.storage_options import Size
from toolkit.text.batch import Batch
from toolkit.whole_corpus import expressions
from toolkit.whole_corpus.expressions import Checked
from toolkit.whole_corpus.kind import KINDS, Competing, Kind, Query
from toolkit.whole_corpus.records import set_folder

MEMORY = Size(256_000_000)


class Common(ConfigStruct, kw_only=True):
    """Options of all entries.

    Attributes:
        kind: the kind of set to compute
        as_: the key of the values; default: the kind, in `calibrate:` the set without its version
        when: an expression: other documents are left out
        text: SET.KEY[.field], the name of edits, or edits: the text in place of the document's
        attributes: the sets that expressions read, where two have the same key
        memory: memory of a process that resolves, above that at its start; signatures of a shard take up to 100 MB in
            any case
    """

    kind: str
    as_: str | None = msgspec.field(name="as", default=None)
    when: str | None = None
    text: str | list[Any] | None = None
    attributes: list[Any] = []
    memory: Size = MEMORY


class Entry(ConfigStruct, kw_only=True):
    """An entry of the section, as data for a worker.

    Attributes:
        set: its name.
        key: Key that its rows have.
        kind: Kind of duplicates.
        options: Options of the kind.
        when: Condition for documents to be compared.
        text: the text that is taken for that of the documents (see `toolkit.data.chosen_text`).
        joined: the sets that its expressions read.
        against: read-only datasets whose documents stay in any case; our records of them are below those of the set.
        memory: bytes of a task above those of a process at its start.
        place: file, line and key, for messages.
        settings: Settings that determine the values, as they are recorded.
    """

    set: str
    key: str
    kind: str
    options: dict[str, Any]
    when: str | None
    text: str | None = None
    joined: list[JoinedSet]
    against: list[Dataset] = []
    memory: int
    place: str
    own: OwnTypes | None = None
    settings: dict[str, Any] = {}

    def configured(self) -> Kind:
        """Return the kind with its options."""
        return config.convert(ConfigNode(self.options), KINDS.find(self.kind), f"kind {self.kind}")

    def checked(self) -> list[Checked]:
        """Return the expressions, checked."""
        return checked(self.configured(), self.when, self.joined, self.own, self.place, self.text)

    @property
    def reads(self) -> list[str]:
        """Return the read sets, sorted."""
        return sorted({joined.set for joined in self.joined})

    @property
    def recorded(self) -> dict[str, Any]:
        """Return the settings as the completion records of shards have them."""
        return {self.key: self.settings}

    @property
    def digest(self) -> str:
        """Return a digest of the settings."""
        return json_digest(self.recorded)


class Plan(ConfigStruct):
    """A section: its entries in order, the schemas of their sets, and its name, which is that of the command."""

    entries: list[Entry]
    schemas: dict[str, records.SetSchema]
    section: str = "dedup"

    def entry(self, set_name: str) -> Entry:
        return next(entry for entry in self.entries if entry.set == set_name)


def read_section(
    section: ConfigNode,
    dataset: Dataset,
    planned: Mapping[str, records.SetSchema],
    name: str = "dedup",
    own: OwnTypes | None = None,
    *,
    external: External = lambda name: [],
) -> Plan:
    """Return the plan of a section; options and expressions are checked, nothing is read or written.

    Args:
        section: Section of the configuration.
        dataset: Dataset that it is about.
        planned: sets that will have been written before, which need not be on disk yet.
        name: Name of the section.
        own: types of the documents' own fields, if they are known.
        external: Function that returns the contents of the files of an external set.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `SET: {documents: …}`" if name == "sample" else "expected `SET: {kind: …}`")
    schemas = dict(planned)
    entries: list[Entry] = []
    for set_name in section.value:
        if not is_set_name(set_name):
            raise section.error((set_name,), "expected a set name of letters, digits, - and _")
        if set_name in schemas:
            raise section.error((set_name,), f"expected another name than those of other sets, got {set_name!r} twice")
        place = section.at(set_name)
        try:
            available = AvailableSets(dataset, schemas, [*section.value], external)
            entry, set_schema = _read_entry(place, set_name, available, name, types=own)
        except ExpressionError as error:
            raise place.error((), str(error)) from None
        entries.append(entry)
        schemas[set_name] = set_schema
    return Plan(entries, {entry.set: schemas[entry.set] for entry in entries}, name)


def check_entry(place: ConfigNode, set_name: str, section: str) -> None:
    """Check an entry by itself, without other sets: its options, the form of its expressions.

    Args:
        place: Place of the entry.
        set_name: its name.
        section: its name.

    Raises:
        ConfigError: naming the place in the file.
    """
    alone = _read_alone(place, set_name, section)
    for option, query in _all_queries(alone.kind, alone.common.when, alone.text).items():
        try:
            check_form(query.text)
        except ExpressionError as error:
            raise place.error((option,) if option in place.value else (), str(error)) from None


class _Alone(NamedTuple):
    """The options of an entry, apart from other sets.

    Attributes:
        own: the options of all entries, as they are written; `common` has them typed.
        text: the option `text`, checked; edits as `edits_in` reads them.
        rest: the options of the kind, as they are written; `kind` has them.
        other_datasets: the option `against`, if it is given.
        key: Key that its rows have.
    """

    own: ConfigNode
    common: Common
    text: str | None
    rest: ConfigNode
    kind: Kind
    other_datasets: ConfigNode
    key: str


def _read_alone(place: ConfigNode, set_name: str, section: str) -> _Alone:
    """Return an entry with its typed options."""
    own, rest = config.divide(place, {field.encode_name for field in msgspec.structs.fields(Common)})
    other_datasets = ConfigNode({})
    if "kind" not in own.value and section in KINDS.names():  # which reads the metadata of all packages
        own.value["kind"] = section
    if "kind" not in own.value:
        raise place.error((), f"expected `kind:`, one of {', '.join(_kinds_of(section))}; got none")
    common = config.convert(own, Common)
    try:
        class_ = KINDS.find(common.kind)
    except UnknownPlugin as error:
        raise UnknownPlugin(str(place.error(("kind",), str(error)))) from None
    if section != class_.SECTION:
        raise place.error(("kind",), f"expected {common.kind!r} in the section `{class_.SECTION}:`, got it in this one")
    text = _text_of(common, own, place, section)
    key = common.as_ or (_stem(set_name) if class_.NAMED else default_name(common.kind))
    hint = "" if common.as_ else "; give it one: `as: NAME`"
    if not is_name(key):
        raise place.error(("as",), f"expected {A_NAME}, got {key!r}{hint}")
    if class_.AGAINST:
        other_datasets, rest = config.divide(rest, {"against"})
    kind = config.convert(rest, class_, f"kind {common.kind}")
    try:
        kind.check()
    except ConfigError as error:
        raise place.error((), str(error)) from None
    return _Alone(own, common, text, rest, kind, other_datasets, key)


def _text_of(common: Common, own: ConfigNode, place: ConfigNode, section: str) -> str | None:
    """Return the option `text` of an entry, checked; edits as a text."""
    if common.text is None:
        return None
    if section != "dedup":
        raise place.error((chosen_text.OPTION,), "expected `text` in a section `dedup:`, got it in this one")
    if isinstance(common.text, list):
        return read_edits(own.at(chosen_text.OPTION))
    try:
        chosen_text.parse_reference(common.text)
    except ConfigError as error:
        raise place.error((chosen_text.OPTION,), str(error)) from None
    return common.text


def _read_entry(
    place: ConfigNode, set_name: str, available: AvailableSets, section: str, *, types: OwnTypes | None
) -> tuple[Entry, records.SetSchema]:
    own, common, text, rest, kind, other_datasets, key = _read_alone(place, set_name, section)
    where = place.where(())
    attributes = read_joined(own)
    texts = [query.text for query in _all_queries(kind, common.when, text).values()]
    joined = available.joined(texts, attributes, place)
    entry = Entry(
        set=set_name,
        key=key,
        kind=common.kind,
        options=rest.value,
        when=common.when,
        text=text,
        joined=joined,
        against=_against(other_datasets, kind, available.dataset, set_name, joined),
        memory=int(common.memory),
        place=where,
        own=types,
    )
    results = {item.name: item.expression.type for item in checked(kind, common.when, joined, types, where, text)}
    if (scale := _scale(entry, kind)) is not None:
        entry = msgspec.structs.replace(entry, options=entry.options | {"scale": config.plain(scale)})
        kind = entry.configured()
    if "keep" in results and results["keep"].not_null.kind not in ("int", "float"):
        entry = msgspec.structs.replace(
            entry, options=entry.options | {"keep": entry.options["keep"] | {"texts": True}}
        )
        kind = entry.configured()
    settings = _settings(entry, kind, available.dataset) | other_datasets.value | available.dataset.lineage
    entry = msgspec.structs.replace(entry, settings=settings)
    type_ = schema.from_annotation(kind.typed(results), f"kind {common.kind}")
    if edits := edits_in(entry.text):
        if "seen" in dict(type_.fields):
            message = "expected a kind without values for each line (`kind: dolma` has spans alone), because an edited "
            raise place.error((chosen_text.OPTION,), f"{message}text has other lines than the document")
        _check_spans(place, {edit.spans for edit in edits}, joined)
    reads = {name: digest_of(available.schema(name)) for name in entry.reads}
    return entry, records.SetSchema(keys={key: records.key_schema(type_, entry.settings)}, reads=reads)


def _check_spans(place: ConfigNode, named: set[str], joined: list[JoinedSet]) -> None:
    """Raise ConfigError for spans of edits in another text."""
    for item in joined:
        for key in item.keys:
            theirs = chosen_text.text_of(key.settings)
            if theirs and any(text.startswith(f"{item.set}.{key.key}") for text in named):
                try:
                    chosen_text.check_same(None, theirs, schema.SPANS, f"{item.set}.{key.key}")
                except ConfigError as error:
                    raise place.error((chosen_text.OPTION,), str(error)) from None


def _kinds_of(section: str) -> list[str]:
    """Return the names of the kinds of a section."""
    return [name for name in KINDS.names() if section == KINDS.find(name).SECTION]


def _stem(set_name: str) -> str:
    """Return the name of a set without version, for rules: ``edu-cal-0`` → ``edu_cal``."""
    return re.sub(r"-\d+$", "", set_name).replace("-", "_")


def _against(node: ConfigNode, kind: Kind, dataset: Dataset, set_name: str, joined: list[JoinedSet]) -> list[Dataset]:
    """Return the datasets of ``against: ROOT``, ``{documents: …}``, or a list of such."""
    value = node.value.get("against", [])
    datasets: list[Dataset] = []
    for place, root in enumerate(value) if isinstance(value, list) else [(None, value)]:
        named = {"dataset": root} if isinstance(root, str) else root
        if not isinstance(named, dict) or not named or named.keys() - {"dataset", "documents"}:
            raise node.error(("against",), "expected ROOT, {dataset: ROOT}, {documents: …}, or a list of such")
        notes = join(set_folder(dataset, set_name), "against", xxhash.xxh3_64_hexdigest(msgspec.json.encode(named)))
        where = node.at("against") if place is None else node.at("against", place)
        other = open_dataset(where, named.get("dataset"), named.get("documents"), join(notes, "none"), notes)
        if absolute(other.documents) == absolute(dataset.documents):
            raise node.error(("against",), f"expected another dataset, got this one: {other.documents}")
        datasets.append(other)
    if not datasets and getattr(kind, "within", True) is False:
        raise node.error((), "expected `against:` with `within: false`, got none")
    if datasets and joined:
        raise node.error(
            ("against",),
            f"with `against:`, expected expressions that use only `document`, because other "
            f"datasets may not have this set; got one that reads the set "
            f"{joined[0].set}",
        )
    return datasets


def _all_queries(kind: Kind, when: str | None, text: str | None = None) -> dict[str, Query]:
    results = kind.queries() | ({"when": Query(when, "condition")} if when is not None else {})
    if edits_in(text):
        return results | expressions.spans_of_edits(text)
    return results | ({chosen_text.OPTION: Query(text, "text")} if text is not None else {})


def checked(
    kind: Kind, when: str | None, joined: list[JoinedSet], own: OwnTypes | None, place: str, text: str | None = None
) -> list[Checked]:
    """Return the queries to documents, checked."""
    queries = _all_queries(kind, when, text)
    return [expressions.checked(name, item, joined, own, place) for name, item in queries.items()]


def _settings(entry: Entry, kind: Kind, dataset: Dataset) -> dict[str, Any]:
    """Return the settings behind the values."""
    options = {k: v for k, v in msgspec.json.decode(msgspec.json.encode(kind)).items() if k not in kind.NEUTRAL}
    if options.get("scale", ...) is None:
        del options["scale"]
    if isinstance(options.get("keep"), dict) and not options["keep"]["texts"]:
        del options["keep"]["texts"]
    results: dict[str, Any] = {"kind": recorded_reference(entry.kind), "as": entry.key}
    results |= {"version": kind.VERSION, "options": options}
    if entry.when is not None:
        results["when"] = entry.when
    if entry.text is not None:
        results[chosen_text.OPTION] = msgspec.to_builtins(edits_in(entry.text)) or entry.text
    if dataset.duplicate_ids == "allow":
        results["duplicate_ids"] = "allow"
    if entry.joined:
        results["attributes"] = [
            {"set": joined.set, "as": {key.key: key.name for key in joined.keys if key.key != key.name}}
            for joined in entry.joined
        ]
    return results | kind.facts()


def _scale(entry: Entry, kind: Kind) -> Declared:
    """Return the declared scale of an entry's labels; None if the entry does it itself."""
    if getattr(kind, "scale", None) is not None:
        return None
    try:
        return common([scale_of(text, entry.joined) for text in kind.label_expressions()])
    except ConfigError as error:
        raise ConfigError(f"{entry.place}: {error}") from None


def prepare(plan: Plan, dataset: Dataset, *, overwrite: bool, write: bool) -> None:
    """Declare the sets: what is on disk under their names must have been made with the same settings.

    Raises:
        ConfigError: if a set was made otherwise, and overwrite is not given.
    """
    declare = {
        name: result
        for name, new in plan.schemas.items()
        if (result := what_to_declare(dataset, name, new, overwrite=overwrite, command=plan.section))
    }
    for name, how in declare.items() if write else ():
        declare_set(dataset, name, plan.schemas[name], forget=how == "changed")


_TRIED = 100


def try_first(plan: Plan, dataset: Dataset, max_document_bytes: int) -> None:
    """Try expressions without sets on the first documents, to fail early.

    Raises:
        ConfigError: with the place in the configuration, and the row.
    """
    try:
        first = dataset.shards()[:1]
    except NoDocuments:  # a run makes them
        return
    for entry in plan.entries:
        if entry.reads or not (results := entry.checked()):
            continue
        for shard in first:
            with dataset.lines(shard, max_document_bytes) as lines:
                rows = Rows(islice(lines, _TRIED), DOCUMENT_DECODER, dataset.shard_path(shard))
                documents = [to_document(row, rows, line) for row, line in rows]
            try:
                block = expressions.Evaluator(results, 0, entry.text).block(0, Batch(documents), [()] * len(documents))
                if "keep" in block.values and isinstance(kind := entry.configured(), Competing):
                    kind.ranked(block.values["keep"])
            except DataError as error:
                where = f"{rows.path}:{error.line}" if error.line else rows.path
                raise ConfigError(f"{error.message} ({where})") from None


def holds(plan: Plan) -> dict[str, str]:
    """Return the sets of a run, with digests of their settings: for `toolkit.execution.leases`."""
    return {f"the set {entry.set}": entry.digest for entry in plan.entries}


def storage_of(section: ConfigNode, name: str) -> tuple[float, bool]:
    """Return disk usage per byte of text, and if documents are read."""
    kinds = []
    for set_name in section.value if isinstance(section.value, dict) else ():
        with suppress(ToolkitError):  # what is wrong is said by `read_section`
            kinds.append(_read_alone(section.at(set_name), set_name, name).kind)
    reads = any(kind.TEXTS or any("document" in query.text for query in kind.queries().values()) for kind in kinds)
    return sum(kind.disk_share for kind in kinds), reads
