"""Record sets that list what a field of other rows has: languages or labels, and splits.

Source: Croissant 1.0, "Categorical Data" and "Splits": an enumeration has a name and a URL for each of its values.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from toolkit.inspect.describe.croissant import jsonld
from toolkit.inspect.describe.facts import Facts
from toolkit.text.languages.labels import code_of, tag_of

_SPLITS = {
    "cr:TrainingSplit": ("train", "training"),
    "cr:ValidationSplit": ("validation", "valid", "val", "dev"),
    "cr:TestSplit": ("test", "eval"),
}
"""The classes of splits that Croissant knows, and what such splits are called."""

_Fields = dict[str, tuple[str, str | list[str]]]
"""What a field is, and the type of its values, by name."""


def language_code(label: str) -> str:
    """Return the code of ISO 639 of a label's language, that of several languages for `multi`; empty for others."""
    tag = tag_of(label)
    return (code_of(tag) or "") if tag else "mul" if label.lower() == "multi" else ""


def language_url(label: str) -> str:
    """Return the page of a label's language at who keeps the codes of ISO 639; empty for a label that has none."""
    code = language_code(label)
    if not code:
        return ""
    return (
        f"https://id.loc.gov/vocabulary/iso639-1/{code}" if len(code) == 2 else f"https://iso639-3.sil.org/code/{code}"
    )


def labels(facts: Facts, page: str) -> jsonld.RecordSet:
    """Return the enumeration of the languages, or other labels, by which an output is cut.

    Args:
        facts: of the output.
        page: of the dataset; a label that nobody else has a page for is a part of it.
    """
    name, what = f"{facts.label_name}s", facts.label_name
    rows = []
    for each in facts.labels:
        url = (language_url(each.label) if what == "language" else "") or f"{page}#{what}-{quote(each.label)}"
        rows.append({"code": each.label, "name": each.label, "url": url, "documents": each.documents})
    fields: _Fields = {
        "code": (f"The {what} as it stands in the paths of files.", "sc:Text"),
        "name": (f"What the {what} is called.", "sc:Text"),
        "url": (f"A page about the {what}.", "sc:URL"),
        "documents": (f"Documents of the {what}.", "sc:Integer"),
    }
    if any(each.documents is None for each in facts.labels):
        del fields["documents"]
    return _listing(name, f"The {name} of the documents.", "sc:Enumeration", "code", fields, rows)


def splits(facts: Facts, page: str) -> jsonld.RecordSet:
    """Return the record set of the splits."""
    rows = [
        {
            "name": each.name,
            "url": next((url for url, names in _SPLITS.items() if each.name.lower() in names), "")
            or f"{page}#split-{quote(each.name)}",
            "share": each.share,
            "documents": each.documents,
        }
        for each in facts.splits
    ]
    fields: _Fields = {
        "name": ("What the split is called.", "sc:Text"),
        "url": ("What the split is for, as Croissant knows it.", ["sc:URL", "cr:Split"]),
        "share": ("The share of the documents that was asked for.", "sc:Float"),
        "documents": ("Documents of the split.", "sc:Integer"),
    }
    return _listing("splits", "The splits of the documents, by hash of the id.", "cr:Split", "name", fields, rows)


def _listing(
    name: str,
    description: str,
    data_type: str,
    key: str,
    fields: _Fields,
    rows: Iterable[dict[str, Any]],
) -> jsonld.RecordSet:
    return jsonld.RecordSet(
        id=name,
        name=name,
        description=description,
        data_type=data_type,
        key=jsonld.Reference(id=f"{name}/{key}"),
        data=[{f"{name}/{field}": row[field] for field in fields} for row in rows],
        field=[
            jsonld.Field(id=f"{name}/{field}", name=field, description=about, data_type=type_)
            for field, (about, type_) in fields.items()
        ],
    )
