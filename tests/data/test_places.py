"""The check of places: what is apart, by any spelling of the paths."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.places import Place, check_apart, is_within, normal
from toolkit.errors import ConfigError
from toolkit.storage.paths import fault_of_name

PARTS = st.lists(st.sampled_from(["a", "b", "documents", "a b", "é"]), min_size=1, max_size=4)
NOISE = st.lists(st.sampled_from(["", ".", "x/.."]), max_size=2)


def spelled(root: str, parts: list[str], noise: list[list[str]]) -> str:
    """The path of these parts, with parts between them that change nothing."""
    found = [each for part, more in zip(parts, [*noise, *([[]] * len(parts))], strict=False) for each in (part, *more)]
    return "/".join([root, *found])


@given(PARTS, PARTS, st.lists(NOISE, max_size=4), st.sampled_from(["/nowhere", "s3://bucket/k", "s3://bucket"]))
def test_places_are_apart_if_neither_is_the_beginning_of_the_other(
    one: list[str], other: list[str], noise: list[list[str]], root: str
) -> None:
    shortest = min(len(one), len(other))
    places = [Place(spelled(root, one, noise), "one"), Place(spelled(root, other, noise[::-1]), "other")]
    if one[:shortest] == other[:shortest]:
        with pytest.raises(ConfigError, match="expected a path separate from"):
            check_apart(places)
    else:
        check_apart(places)
        check_apart(places[:1], places[1:])


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("s3://b//k", "s3://b/k"),
        ("s3://b/a/../k/", "s3://b/k"),
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("s3://b/../../k", "s3://b/k"),
        ("/nowhere//a/./b/", "/nowhere/a/b"),
        ("/", "/"),
        (".", os.path.realpath(".")),
    ],
)
def test_a_path_has_one_normal_spelling(path: str, wanted: str) -> None:
    assert normal(path) == wanted
    assert normal(wanted) == wanted


def test_a_root_holds_everything_and_a_beginning_of_a_name_nothing() -> None:
    assert is_within("/a", "/")
    assert is_within("/a/b", "/a")
    assert not is_within("/ab", "/a")
    assert not is_within("s3://bucket2/a", "s3://bucket")


@given(st.text(alphabet="a./\0-é", max_size=8))
def test_a_name_that_has_no_fault_stays_below_its_folder(name: str) -> None:
    if fault_of_name(name) is None:
        assert os.path.normpath(f"/root/{name}") == f"/root/{name}"
        assert "\0" not in name


@pytest.mark.parametrize("path", ["", " ", "a\0b"])
def test_no_place_is_empty(path: str) -> None:
    with pytest.raises(ConfigError, match="file: expected a folder for the output"):
        check_apart([Place(path, "the output", "file")])
