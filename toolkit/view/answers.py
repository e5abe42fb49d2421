"""Requests of the page, and answers as plain data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data.schema import SPANS, Type
from toolkit.errors import ConfigError
from toolkit.view.corpus import MOST, At, Corpus, CorpusRow, Queries, Query, QuerySpec, Question, ValueSet
from toolkit.view.dataset import DroppedBy, Explainer
from toolkit.view.labels import LabelFile

HEAD = 400
"""Code points of the beginning of a text in a list."""

TEXT = 300_000
"""Code points of a text that are shown at first."""

VALUE = 2_000
"""Characters of a value as JSON that are shown."""

DEEPEST = 3
"""Objects in each other whose fields have rows of their own."""


def list_entry(document: CorpusRow) -> dict[str, Any]:
    """Return a document as it stands in a list."""
    return {
        "at": list(document.at),
        "id": document.id,
        "source": document.source,
        "chars": len(document.text),
        "head": document.text[:HEAD].strip(),
        "faults": document.faults,
    }


def full_document(document: CorpusRow, sets: Sequence[ValueSet], *, all_of_it: bool = False) -> dict[str, Any]:
    """Return a document with all of its fields and values.

    Args:
        document: the document.
        sets: Sets whose values it may have.
        all_of_it: True if all of its text is wanted.
    """
    return {
        **list_entry(document),
        "text": document.text if all_of_it else document.text[:TEXT],
        "fields": list(_rows("", document.fields)),
        "values": [
            {"set": values.name, "rows": list(_rows("", document.values[values.name]))}
            for values in sets
            if values.name in document.values
        ],
        "marks": marks(document, sets),
    }


def _rows(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str, bool]]:
    """Yield the parts of a value: its path, the JSON of it, and whether that is cut."""
    if isinstance(value, dict) and value and depth < DEEPEST:
        for name, inner in value.items():
            yield from _rows(f"{path}.{name}" if path else name, inner, depth + 1)
        return
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    yield path, text[:VALUE], len(text) > VALUE


def marks(document: CorpusRow, sets: Sequence[ValueSet]) -> dict[str, Any]:
    """Return the marks in a document's text, by the types of values.

    Labels of lines are a list of objects with ``label``; the label is the first one of an object with ``label`` and
    ``prob``; spans are spans; header and footer are ``header_lines`` and ``footer_lines`` of an object.
    """
    marked: dict[str, Any] = {"label": None, "lines": [], "spans": [], "header": 0, "footer": 0}
    for values in sets:
        for key, type_ in values.types.items():
            value = document.values.get(values.name, {}).get(key)
            if value is not None:
                _mark(marked, key, type_.not_null, value)
    return marked


def _mark(marked: dict[str, Any], key: str, type_: Type, value: Any) -> None:
    fields = dict(type_.fields)
    if type_ == SPANS and isinstance(value, list):
        marked["spans"] += [[key, *span] for span in value if isinstance(span, list) and len(span) == 3]
    elif type_.kind == "list" and type_.item and "label" in dict(type_.item.not_null.fields):
        marked["lines"] = marked["lines"] or [_labelled(line) for line in value]
    elif isinstance(value, Mapping):
        if {"label", "prob"} <= {*fields}:
            marked["label"] = marked["label"] or value.get("label")
        for name in ("header", "footer"):
            count = value.get(f"{name}_lines")
            marked[name] = marked[name] or (count if isinstance(count, int) else 0)
        for name, inner in fields.items():
            if value.get(name) is not None and inner.not_null == SPANS:
                _mark(marked, f"{key}.{name}", SPANS, value[name])


def _labelled(line: Any) -> list[Any]:
    return [line.get("label"), line.get("prob")] if isinstance(line, Mapping) else [None, None]


PAGE = 20
"""Documents of a page; at most `LONGEST_PAGE` are asked for."""

LONGEST_PAGE = 100
LONGEST_TEXT = 10_000
"""Characters of an expression, or an id."""

PATIENCE = 1.0
"""Seconds that an answer waits for a query; then it says how far that is."""

Parameters = Mapping[str, str]


class CorpusAnswers:
    """Answers questions about a corpus.

    Args:
        corpus: Corpus that is browsed.
        labels: Labels that are given by hand.
        explainer: says why the mix drops documents; None without a mix.
        rules: Rules of the mix, as they are written, for people.
        shown: the sets whose values are shown at first.
    """

    def __init__(
        self,
        corpus: Corpus,
        labels: LabelFile,
        explainer: Explainer | None,
        rules: Sequence[Mapping[str, str]],
        visible_sets: Sequence[str],
    ) -> None:
        self._corpus, self._labels, self._explainer, self._rules = corpus, labels, explainer, list(rules)
        self._visible_sets = list(visible_sets)
        self._queries = Queries(corpus, self._question)
        self._counted: dict[int, int] = {}
        self.methods: dict[str, Callable[[Parameters], dict[str, Any]]] = {
            name: getattr(self, name) for name in ("view", "rows", "document", "explain", "trace", "find")
        }

    def close(self) -> None:
        """End the queries."""
        self._queries.forget()

    def view(self, params: Parameters) -> dict[str, Any]:
        """Return the description of the corpus; files that have changed are read anew from now on."""
        self._corpus.refresh()
        self._labels.refresh()
        self._queries.forget()
        self._counted.clear()
        if self._explainer:
            self._explainer.forget()
        return {
            "title": self._corpus.title,
            "kind": self._corpus.kind,
            "documents": self._total(),
            "page": PAGE,
            "most": MOST,
            "shards": [{"name": shard.name, "rows": shard.rows} for shard in self._corpus.shards],
            "sets": [
                {
                    "name": values.name,
                    "on": values.name in self._visible_sets,
                    "keys": [[key, str(type_)] for key, type_ in values.types.items()],
                }
                for values in self._corpus.sets
            ],
            "mix": {"rules": self._rules} if self._explainer else None,
            "labels": {
                "path": self._labels.path,
                "annotator": self._labels.annotator,
                "documents": len(self._labels),
                "questions": [
                    {"name": question.name, "labels": list(question.labels)}
                    for question in self._labels.questions.values()
                ],
            },
        }

    def _total(self) -> int | None:
        counts = [self._rows_of(number) for number in range(len(self._corpus.shards))]
        return None if None in counts else sum(count for count in counts if count is not None)

    def _rows_of(self, number: int) -> int | None:
        rows = self._corpus.shards[number].rows
        return self._counted.get(number) if rows is None else rows

    # --- pages --------------------------------------------------------------------------------------------------------

    def rows(self, params: Parameters) -> dict[str, Any]:
        """Return a page: documents in the order of the corpus, or those that a query has found."""
        first = _number(params, "first", 0)
        count = min(_number(params, "count", PAGE), LONGEST_PAGE)
        where, sort, sets = _text(params, "where").strip(), _text(params, "sort").strip(), self._sets(params)
        rule = self._rule(params)
        if not (where or sort) and rule is None:
            results = self._in_order(first, count)
            return {"rows": [self._row(item, None) for item in results], "total": self._total(), "done": True}
        spec = QuerySpec(where, sort, params.get("order") == "descending", sets, rule)
        query = self._queries.get(spec)
        query.wait_for(first + count, PATIENCE)
        state = self._state(query)  # before its places: an answer that says that all is done has all of them
        places = dict(query.places(first, count))
        rows = [self._row(item, places[item.at]) for item in self._corpus.read(list(places), ())]
        return {"rows": rows, **state}

    def _question(self, spec: QuerySpec) -> Question:
        question = self._corpus.question(spec.where, spec.sort, spec.sets)
        if spec.rule is None or self._explainer is None:
            return question
        return DroppedBy(question, self._explainer, None if spec.rule < 0 else self._rules[spec.rule]["name"])

    def _rule(self, params: Parameters) -> int | None:
        text = params.get("rule", "")
        if text in ("", "kept"):
            return -1 if text and self._explainer else None
        number = _number(params, "rule", 0)
        if number >= len(self._rules):
            raise ConfigError(f"rule: expected the number of a rule of the mix that drops documents, got {number}")
        return number

    def _state(self, query: Query) -> dict[str, Any]:
        is_complete = query.is_complete  # before its numbers, which may still grow until it is
        return {
            "total": query.matches - query.without,
            "without": query.without,
            "cut": query.is_cut,
            "done": is_complete,
            "scanned": query.scanned,
            "of": self._total(),
            "reads_documents": query.reads_documents,
            "faults": query.faults[:LONGEST_PAGE],
        }

    def _in_order(self, first: int, count: int) -> list[CorpusRow]:
        """Return documents by their number among all. How many a shard has may be learned on the way."""
        results: list[CorpusRow] = []
        begin = 0  # of the shard among all
        for number in range(len(self._corpus.shards)):
            rows = self._rows_of(number)
            if rows is not None and begin + rows <= first:
                begin += rows
                continue
            row = max(first - begin, 0)
            remaining = count - len(results)
            if rows is not None:
                remaining = min(remaining, rows - row)
            read = self._corpus.read([At(number, row + i) for i in range(remaining)], ())
            results += read
            if len(results) >= count:
                break
            if rows is None:
                rows = self._counted[number] = row + len(read) if read or not row else self._count(number, row)
            begin += rows
        return results

    def _count(self, number: int, beyond: int) -> int:
        """Return the number of documents of a shard, below a missing row."""
        low, high = 0, beyond
        while low < high:
            middle = (low + high) // 2
            if self._corpus.read([At(number, middle)], ()):
                low = middle + 1
            else:
                high = middle
        return low

    def _row(self, document: CorpusRow, score: float | None) -> dict[str, Any]:
        return {
            **list_entry(document),
            "shard": self._corpus.shards[document.at.shard].name,
            "score": score,
            "labels": self._labels.of(document.source, document.id, self._corpus.label_places(document)),
        }

    # --- one document -------------------------------------------------------------------------------------------------

    def document(self, params: Parameters) -> dict[str, Any]:
        """Return a document with its values in the selected sets."""
        at, sets = self._at(params), self._sets(params)
        result = next(iter(self._corpus.read([at], sets)), None)
        if result is None:
            raise ConfigError(f"expected a document, got the end of {self._corpus.shards[at.shard].name}")
        answer = full_document(result, self._corpus.sets, all_of_it=params.get("all") == "1")
        shard = self._corpus.shards[at.shard]
        return {
            **answer,
            "shard": shard.name,
            "place": f"{shard.path}:{at.row + 1}",
            "labels": self._labels.of(result.source, result.id, self._corpus.label_places(result)),
        }

    def explain(self, params: Parameters) -> dict[str, Any]:
        """Return why the mix keeps or drops a document."""
        if self._explainer is None:
            raise ConfigError("expected a configuration with a section `mix:`, got none: there are no rules")
        return {"streams": self._explainer.explain(self._at(params))}

    def trace(self, params: Parameters) -> dict[str, Any]:
        """Return the input of a document, and its tokens in outputs."""
        return {"streams": self._explainer.trace(self._at(params)) if self._explainer else []}

    def find(self, params: Parameters) -> dict[str, Any]:
        """Return the places of the documents with an id; null where only a query can tell."""
        id = _text(params, "id").strip()
        if not id:
            raise ConfigError("expected an id, got none")
        places = self._corpus.places_of(id)
        if places:  # a hash is no proof
            places = [item.at for item in self._corpus.read(places[:LONGEST_PAGE], ()) if item.id == id] or None
        return {"places": places and [list(at) for at in places], "where": f"document.id == {id!r}"}

    # --- labels -------------------------------------------------------------------------------------------------------

    def label(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Give a document a label, or take it away with null; it is on disk when this returns.

        Args:
            params: ``at``, ``id``, ``question``, ``label``.
        """
        at, id, question, label = (params.get(name) for name in ("at", "id", "question", "label"))
        if not (isinstance(at, list) and len(at) == 2 and all(type(item) is int and item >= 0 for item in at)):
            raise ConfigError("expected `at`, the place of a document, [shard, row]")
        if not isinstance(id, str) or not isinstance(question, str) or not isinstance(label, str | int | float | None):
            raise ConfigError("expected `id`, `question` and `label`, a text, a number or null")
        place = self._checked(At(*at))
        result = next(iter(self._corpus.read([place], ())), None)
        if result is None or result.id != id:  # what was looked at is not there any more
            got = "the end of the file" if result is None else result.id or "; ".join(result.faults)
            raise ConfigError(f"expected the document {id!r} at this place, got {got!r}; load the page again")
        number = float(label) if type(label) is int and abs(label) < 1 << 53 else label
        labels = self._labels.put(result.source, result.id, question, number, self._corpus.label_places(result))
        changes = self._labels.changes()
        return {"labels": labels, "documents": len(self._labels)} | ({"changes": changes} if changes else {})

    # --- what is given ------------------------------------------------------------------------------------------------

    def _sets(self, params: Parameters) -> tuple[str, ...]:
        names = [values.name for values in self._corpus.sets]
        if "sets" not in params:
            return tuple(names)
        requested = [name for name in _text(params, "sets").split(",") if name]
        if unknown := [name for name in requested if name not in names]:
            raise ConfigError(f"expected existing sets, {', '.join(names) or 'none'}, got {unknown[0]!r}")
        return tuple(requested)

    def _at(self, params: Parameters) -> At:
        return self._checked(At(_number(params, "shard", 0), _number(params, "row", 0)))

    def _checked(self, at: At) -> At:
        if at.row >= 1 << 40:
            raise ConfigError(f"expected a row below {1 << 40:,}, got {at.row:,}")
        if at.shard >= len(self._corpus.shards):
            raise ConfigError(f"expected a shard below {len(self._corpus.shards)}, got {at.shard}")
        return at


def _number(params: Parameters, name: str, default: int) -> int:
    text = params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise ConfigError(f"{name}: expected a number from 0, got {text[:50]!r}")
    return int(text)


def _text(params: Parameters, name: str) -> str:
    text = params.get(name, "")
    if len(text) > LONGEST_TEXT:
        raise ConfigError(f"{name}: expected at most {LONGEST_TEXT:,} characters, got {len(text):,}")
    return text
