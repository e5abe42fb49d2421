"""The frame tells every difference between two programs."""

import runpy

import pytest

from tests.oracles.frame import FOLDER, HEAD, Verdict, by_id, compare


def test_what_differs_is_told() -> None:
    theirs = by_id([Verdict("a", text="x"), Verdict("b", text="x"), Verdict("c", "short"), Verdict("d", "short")])
    ours = by_id([Verdict("a", text="x"), Verdict("b", text="y"), Verdict("c", "long"), Verdict("d", text="z")])
    table = compare(theirs, ours)
    assert (table.pages, table.kept_by_both, table.only_there, table.only_here) == (4, 2, 0, 1)
    assert (table.texts_equal, table.dropped_by_both, table.reasons_equal) == (1, 1, 0)
    assert table.unlike.keys() == {"b", "c", "d"}
    assert table.row("it").count("|") == HEAD.count("|") == 9


def test_values_are_compared_by_name() -> None:
    ours = by_id([Verdict("a", values={"words": 3, "chars": 1.0})])
    table = compare(by_id([Verdict("a", values={"words": 3, "chars": 2.0, "lines": 1})]), ours)
    assert table.values_equal == {"words": (1, 1), "chars": (0, 1), "lines": (0, 1)}
    assert table.unlike.keys() == {"a"}


def test_no_page_is_left_out() -> None:
    with pytest.raises(ValueError, match="1 pages have one verdict only, such as b"):
        compare(by_id([Verdict("a"), Verdict("b")]), by_id([Verdict("a")]))
    with pytest.raises(ValueError, match="two verdicts of a"):
        by_id([Verdict("a"), Verdict("a")])


def test_the_script_of_fineweb_2_finds_the_tables_that_ship() -> None:
    """The peer runs by hand alone, so nothing else would tell that a table has moved."""
    configured = runpy.run_path(str(FOLDER / "peers" / "fineweb_2.py"))["configuration"]("deu_Latn")
    assert configured["stopwords"]
    assert [n for n, _ in configured["dup_n_grams"]] == [5, 6, 7, 8, 9, 10]
