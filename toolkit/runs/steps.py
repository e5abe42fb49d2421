"""What the steps of a command are called where users see them: in lines of progress, and in errors.

A step that does just what its command says is called like the command: ``ingest``, ``tag``, ``mix``. Code names the
others by a short word, which is here with what users read in its place. A word of a plugin that is not here is shown as
it is.
"""

STEPS = {
    "again": "reading again what may be a repeat",
    "bucket": "finding documents that may be near duplicates",
    "budget": "counting what the budget takes from",
    "choose": "choosing documents",
    "copy": "copying the sample",
    "copy NAME": "copying documents of NAME",
    "count": "counting documents",
    "count groups": "counting the documents of large groups",
    "croissant": "checking files against their description",
    "decide": "deciding which near duplicates stay",
    "draw": "drawing the sample",
    "fit": "fitting the map of scores",
    "fit NAME": "fitting NAME",
    "foreign": "looking at attributes of other programs",
    "gather": "putting what was found in the order of the documents",
    "index": "making row indexes",
    "keep": "keeping what later runs compare with",
    "labels NAME": "counting the labels of NAME",
    "lock": "taking digests of the inputs",
    "look": "looking at files",
    "look up": "looking up documents by their ids",
    "passages": "comparing passages",
    "plan": "planning which documents are compared",
    "rank": "ranking scores",
    "read NAME": "reading the values of NAME",
    "candidates": "reading documents that may be near duplicates",
    "report": "writing the report of what was found",
    "resolve": "deciding which copies stay",
    "samples": "finding documents to show",
    "sign NAME": "computing the signatures of NAME",
    "sort ids": "sorting ids",
    "split": "writing which split each document is in",
    "texts": "reading texts",
    "texts NAME": "gathering the texts of NAME",
    "train NAME": "training NAME",
    "weigh": "counting the characters of each stream",
    "write": "writing the output",
    "write NAME": "writing NAME",
}
"""In words, by what the code says; NAME stands for that of a set or model."""


def in_words(step: str) -> str:
    """Return what users read of a step."""
    word, _, name = step.partition(" ")
    return STEPS.get(step) or STEPS.get(f"{word} NAME", step).replace("NAME", name)
