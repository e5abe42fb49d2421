"""Labels of languages, by the table and by paths."""

import pytest

from toolkit.text.languages.labels import (
    LID_176,
    WELL_FORMED,
    code_of,
    in_form,
    is_known,
    label_of_path,
    tag_of,
    tags_of,
)


def test_the_labels_of_lid_176_are_tags() -> None:
    assert len(LID_176) == 176
    tags = {label: tag_of(label) for label in LID_176}
    assert {label: tag for label, tag in tags.items() if tag != label} == {"als": "gsw", "eml": "x-eml"}


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        ("Als", "gsw"),
        ("EN", "en"),
        ("bh", "bh"),
        ("bih", "bh"),
        ("sh", "sh"),
        ("iw", "he"),
        ("deu_Latn", "de"),
        ("deu_latn", "de"),
        ("deu_Cyrl", "de-Cyrl"),
        ("srp_Cyrl", "sr-Cyrl"),
        ("zho_Hans", "zh-Hans"),
        ("cmn_Hani", "cmn-Hani"),
        ("hbs_Latn", "sh-Latn"),
        ("als_Latn", "als-Latn"),  # here it is Tosk Albanian
        ("nob_Latn", "nb"),
        ("pt_br", "pt-BR"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("sl-rozaj", "sl-rozaj"),
        ("x-eml", "x-eml"),
        ("multi", None),
        ("und_Latn", None),
        ("zxx_Zzzz", None),
        ("xx", None),
        ("documents", None),
        ("", None),
        ("a b", None),
    ],
)
def test_a_label_is_a_tag_in_its_usual_case(label: str, tag: str | None) -> None:
    assert tag_of(label) == tag
    if tag is not None:
        assert WELL_FORMED.fullmatch(tag)
        assert tag_of(tag) == tag


def test_tags_are_given_once_and_codes_without_script() -> None:
    assert tags_of(["als", "gsw", "multi", "deu_Latn", "de", "srp_Cyrl"]) == ["gsw", "de", "sr-Cyrl"]
    assert [code_of(tag) for tag in ("sr-Cyrl", "gsw", "x-eml")] == ["sr", "gsw", None]


def test_known_are_labels_of_models_and_what_releases_made_of_them() -> None:
    for label in ("en", "En", "multi", "Multi", "gsw", "x-eml", "als", "deu_Latn", "eng-Latn"):
        assert is_known(label)
    for label in ("xx", "documents", "en_part_1", "", "english"):
        assert not is_known(label)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("de/de.jsonl.gz", "de"),
        ("de/de_part_12.jsonl.gz", "de"),
        ("de_meta/de_meta_part_1.jsonl.gz", "de"),
        ("de_meta/de_meta.jsonl.gz", "de"),
        ("22.01/de_meta/de_meta_134.jsonl.zst", "de"),
        ("de_meta.jsonl", "de"),
        ("x-eml_meta/x-eml_meta_part_1.jsonl.zst", "x-eml"),
        ("multi_meta/multi_meta_part_2.jsonl.gz", "multi"),
        ("en_part_1/en_part_1.jsonl.gz", "en_part_1"),
        ("en_part_1/en_part_1_part_2.jsonl.gz", "en_part_1"),
        ("en/en_part_1.jsonl.gz", "en"),
        ("en_part_1.txt.gz", "en"),
        ("a.b/a.b_part_2.parquet", "a.b"),
        ("deu_Latn/000_00000.parquet", "deu_Latn"),
        ("data/de.parquet", "de"),
        ("data/train-00000.parquet", None),
        ("sample.jsonl", None),
        ("_meta/_meta.jsonl", "_meta"),
    ],
)
def test_the_label_of_a_path_has_no_number_and_no_meta(path: str, label: str | None) -> None:
    assert label_of_path(path) == label


@pytest.mark.parametrize(
    ("label", "tag", "oscar"),
    [
        ("eng_Latn", "en", "en"),
        ("arb_Arab", "arb-Arab", "ar"),
        ("cmn_Hani", "cmn-Hani", "zh"),
        ("zho_Hant", "zh-Hant", "zh"),
        ("als_Latn", "als-Latn", "sq"),
        ("gsw_Latn", "gsw", "als"),
        ("als", "gsw", "als"),
        ("eml", "x-eml", "eml"),
        ("nob_Latn", "nb", "no"),
        ("yor_Latn", "yo-Latn", "yo"),
        ("gaz_Latn", "gaz-Latn", "gaz-latn"),
        ("zxx_Zzzz", None, None),
        ("und_Latn", None, None),
    ],
)
def test_labels_in_other_forms(label: str, tag: str | None, oscar: str | None) -> None:
    """A label of lid.176 is one of OSCAR; GlotLID's ``als`` is another language."""
    assert (in_form(label, "bcp47"), in_form(label, "oscar"), in_form(label, "model")) == (tag, oscar, label)


def test_each_label_of_lid_176_is_oscars() -> None:
    assert {label: in_form(label, "oscar") for label in LID_176} == {label: label for label in LID_176}
