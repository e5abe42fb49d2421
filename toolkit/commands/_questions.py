"""Shared parts of `compare` and `evaluate`: expressions over documents, the sets that these read, tables of labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from toolkit.command_options import Flag, Limited
from toolkit.commands import _tag_sample as using
from toolkit.data import document_fields, excerpts, schema
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError, did_you_mean
from toolkit.inspect.counting import LABELS_AT
from toolkit.learn.evaluate.predictions import NAMED, WHERE, Question
from toolkit.mix.join import JoinedShard
from toolkit.records import sets as records
from toolkit.rules import expressions
from toolkit.rules.expression_tree import ExpressionError
from toolkit.source import Check
from toolkit.stages.context import Context, table
from toolkit.storage.paths import is_set_name
from toolkit.tag import sample


class SetOptions(Limited, frozen=True, kw_only=True):
    """Options for reading sets of one dataset.

    Attributes:
        config: configuration (YAML) of the dataset
        dataset: the dataset, without a configuration

    Raises:
        ConfigError: unless it is said, once, of which dataset.
    """

    config: Annotated[str | None, Flag("-c", "--config", metavar="FILE")] = None
    dataset: Annotated[str | None, Flag(metavar="ROOT")] = None
    sample: bool = False

    def __post_init__(self) -> None:
        if (self.config is None) == (self.dataset is None):
            raise ConfigError("expected a configuration (-c FILE), or --dataset ROOT")
        if self.sample and self.config is None:
            raise ConfigError("expected --sample only with a configuration (-c FILE)")


def dataset_of(context: Context, root: str | None, names: list[str], *, sampled: bool) -> tuple[Dataset, str]:
    """Return the dataset of the sets, and the description of a sample.

    Args:
        context: Context of the command.
        root: Root of the dataset, without a configuration.
        names: Names of the sets.
        sampled: True if the sample is asked for.
    """
    if root is not None:
        return open_dataset(root, None, None), ""
    dataset = context.dataset
    if not sampled and not using.only_sampled(dataset, names):
        return dataset, ""
    return sample.dataset_of(dataset), str(using.of(context, names))


def shards_of(context: Context, dataset: Dataset, over: str) -> list[str]:
    """Return the shards to read."""
    return context.limited(dataset.shards()) if over else context.shards(dataset)[0]


def works_for(
    context: Context, dataset: Dataset, expressions: Sequence[Question], over: str, check: Check
) -> tuple[list[JoinedShard], dict[str, str]]:
    """Return the shards for some questions, and unreadable ones.

    Args:
        context: Context of the command.
        dataset: Dataset that has the sets.
        expressions: all that is asked.
        over: Description of the sample; empty for the whole dataset.
        check: Treatment of sets that are out of date.

    Raises:
        ConfigError: if there are no documents, or a question is none over these sets.
    """
    source = context.source_of(dataset, shards_of(context, dataset, over))
    resolved = source.resolve_each(named(expressions), context.options.command, check=check)
    works = resolved.joined(context.config.max_document_bytes)
    if not works:
        raise ConfigError(f"expected documents in {dataset.documents}, got none")
    for question in expressions:
        question.check(works[0])
    return works, resolved.unreadable


LABELS, LANGUAGE, LENGTH = "labels", "language", "length"
"""Names of questions; the others are called as they are written."""

_LANGUAGES = (*LABELS_AT, "text_language.label")
"""Expressions for the language of documents, if none is given."""


class Finder:
    """Finds the sets of expressions.

    Args:
        dataset: Dataset that has them.
        given: names of sets whose keys are meant where several have one.
    """

    def __init__(self, dataset: Dataset, selected: Sequence[str]) -> None:
        self._all = dataset.sets()
        loaded = {name: records.load_schema(dataset, name) for name in self._all}
        self._types = {name: set_schema.types() for name, set_schema in loaded.items() if set_schema}
        self._keys: dict[str, list[str]] = {name: [*self._types.get(name, ())] for name in self._all}
        self._foreign = self._keys.keys() - self._types
        if unknown := next((name for name in selected if name not in self._keys), None):
            raise ConfigError(f"--attributes {unknown}: expected a set{self._hint(unknown)}")
        self._selected: Mapping[str, list[str]] = {name: self._keys[name] for name in selected}

    def _hint(self, name: str) -> str:
        return did_you_mean(name, self._all) or f"; there are: {', '.join(self._all) or 'none'}"

    def where(self, text: str | None) -> list[Question]:
        """Return the question for selecting documents; none if it is all of them."""
        return [] if text is None else [self.question(WHERE, text, "--where")]

    def question(self, name: str, text: str, option: str) -> Question:
        """Return a question with its sets.

        Args:
            name: Name of the question.
            text: the expression, or what stands for one.
            option: Option that it is given by, for messages.

        Raises:
            ConfigError: if it is no expression, or it is not clear which sets it reads.
        """
        if text in NAMED and not any(text in keys for keys in self._keys.values()):
            return Question(name, text, [], option)
        first = text.strip().partition(".")[0]
        if first in self._foreign and is_set_name(first):  # its keys are known once its files are read
            return Question(name, text, [first], option)
        try:
            results = expressions.sets_read(text, self._selected, self._keys, dict)
            read = [*results]
            if None not in results.values():
                used = expressions.keys_in(text)
                self._refuse_unknown_key(used, option, text)
                read += [key for key, keys in self._selected.items() if used & {*keys} or key in self._foreign]
        except ExpressionError as error:
            self._refuse_unknown(option, text)
            message = str(error).replace("`attributes: [SET]`", "`--attributes SET`")
            raise ConfigError(f"{option} {text}: {message}") from None
        return Question(name, text, list(dict.fromkeys(read)), option)

    def _refuse_unknown(self, option: str, text: str) -> None:
        """Raise ConfigError for ``SET.KEY`` of a missing set."""
        first = text.strip().partition(".")[0]
        if is_set_name(first) and not first.isidentifier() and first not in self._keys:
            raise ConfigError(f"{option} {text}: expected a set, got {first!r}{self._hint(first)}")

    def _refuse_unknown_key(self, used: set[str], option: str, text: str) -> None:
        """Raise ConfigError for a name of no set."""
        all_keys = {key for keys in self._keys.values() for key in keys}
        unknown = sorted(used - all_keys - {document_fields.METADATA})
        if unknown and not self._foreign & self._selected.keys():
            hint = (
                did_you_mean(unknown[0], [*all_keys, *self._all, *NAMED])
                or f"; there are: {', '.join(sorted(all_keys))}"
            )
            raise ConfigError(f"{option} {text}: expected a key of a set, got {unknown[0]!r}{hint}")

    def language(self) -> Question | None:
        """Return the question about the language of documents; None if no set, or several, have one."""
        for text in _LANGUAGES:
            key, *fields = text.split(".")
            having = [name for name, types in self._types.items() if key in types and _has(types[key], fields)]
            if len(having) == 1:
                return Question(LANGUAGE, f"{having[0]}.{text}", having, "--language")
        return None


def _has(type_: schema.Type, fields: Sequence[str]) -> bool:
    """Return True if values have a field at this path."""
    if type_.kind == "nullable" and type_.item:
        return _has(type_.item, fields)
    return not fields or any(name == fields[0] and _has(inner, fields[1:]) for name, inner in type_.fields)


def of_lengths() -> Question:
    """Return the question about the length of documents, in code points."""
    return Question(LENGTH, "document.chars")


def named(questions: Sequence[Question]) -> list[str]:
    """Return the sets of questions, each once."""
    return list(dict.fromkeys(name for question in questions for name in question.sets))


# --- labels that are confused, for people -----------------------------------------------------------------------------

MATRIX = 8
"""Labels up to which a matrix is shown; of more, the pairs that are met most."""

PAIRS = 20


def confusion(pairs: Mapping[tuple[Any, ...], int], names: tuple[str, str], *, whole: bool) -> str:
    """Return a matrix of labels, the first ones down; of many labels the pairs that differ most often.

    Args:
        pairs: Pairs of labels, with their documents.
        names: Names of where the first and the second labels are from.
        whole: True if these are all pairs.
    """
    totals: list[Counter[Any]] = [Counter(), Counter()]
    for pair, count in pairs.items():
        for total, label in zip(totals, pair, strict=True):
            total[label] += count
    if all(len(total) <= MATRIX for total in totals) and whole:
        columns = sorted(totals[1], key=str)
        rows = [[f"{names[0]} \\ {names[1]}", *map(_label, columns)]]
        for label in sorted(totals[0], key=str):
            rows.append([_label(label), *(f"{pairs.get((label, column), 0):,}" for column in columns)])
        return table(rows, right=range(1, len(rows[0])))
    different = sorted(((c, pair) for pair, c in pairs.items() if pair[0] != pair[1]), key=lambda item: -item[0])
    if not different:
        return f"{len(totals[0]):,} labels"
    rows = [[*names, "documents"]]
    rows += [[_label(one), _label(other), f"{count:,}"] for count, (one, other) in different[:PAIRS]]
    more = len(different) - PAIRS
    return table(rows, right=[2]) + (f"\nand {more:,} other pairs" if more > 0 else "")


def _label(label: Any) -> str:
    return excerpts.head(str(label), 40)
