"""Names and scripts of languages."""

import pytest

from toolkit.text.languages.labels import LID_176
from toolkit.text.languages.tables import glotlid_label, language, named_rows, thresholds


@pytest.mark.parametrize(
    ("label", "title", "script", "tag"),
    [
        ("fi", "Finnish", "Latin", "fi"),
        ("eng_Latn", "English", "Latin", "en"),
        ("zh", "Chinese", "Han", "zh"),
        ("zho_Hans", "Chinese (Simplified Han)", "Simplified Han", "zh-Hans"),
        ("cmn_Hani", "Mandarin Chinese", "Han", "cmn-Hani"),
        ("kor_Hang", "Korean", "Hangul", "ko-Hang"),
        ("srp_Cyrl", "Serbian", "Cyrillic", "sr-Cyrl"),
        ("sr-Latn", "Serbian (Latin)", "Latin", "sr-Latn"),
        ("arb_Latn", "Standard Arabic (Latin)", "Latin", "arb-Latn"),
        ("pt_br", "Portuguese (BR)", "Latin", "pt-BR"),
        ("zh-Hans-CN", "Chinese (Simplified Han, CN)", "Simplified Han", "zh-Hans-CN"),
        ("als", "Alemannic", "Latin", "gsw"),  # lid.176's
        ("als_Latn", "Tosk Albanian", "Latin", "als-Latn"),
        ("eml", "Emilian-Romagnol", "Latin", "x-eml"),
        ("diq", "Dimli", "Latin", "diq"),
        ("multi", "Multiple languages", "", None),
        ("und_Latn", "und_Latn", "", None),
        ("no label", "no label", "", None),
        ("x-ours", "x-ours", "", "x-ours"),
        ("", "", "", None),
    ],
)
def test_a_label_written_out(label: str, title: str, script: str, tag: str | None) -> None:
    found = language(label)
    assert (found.label, found.title, found.script, found.tag) == (label, title, script, tag)


def test_each_label_of_the_models_has_a_name_and_its_own_script() -> None:
    """Of lid.176 and of GlotLID, as FineWeb-2 has it; where a label of GlotLID names a script, it is that one."""
    of_glotlid = {label for label in thresholds("fineweb-2-baedee4") if "_" in label}
    assert len(of_glotlid) > 1000
    codes = {code: name for code, name, _ in named_rows("scripts-cldr-47.tsv")}
    for label in LID_176 | of_glotlid:
        found = language(label)
        assert found.name not in ("", label), label
        assert codes[found.script_code] == found.script, label
        if "_" in label and found.tag and label[4:] in found.tag:
            assert found.script_code == label[4:]


def test_usual_scripts_agree_with_the_other_table_of_languages() -> None:
    """CLDR's likely scripts and the scripts of the Wikipedias that lid.176 was trained on."""
    said = {label: (language(label).script_code, glotlid_label(label)[4:]) for label in LID_176}
    assert {label: pair for label, pair in said.items() if pair[0] != pair[1]} == {"ko": ("Kore", "Hang")}


def test_what_runs_right_to_left() -> None:
    found = {label for label in LID_176 if language(label).rtl}
    assert found == {*"ar arz azb ckb dv fa he lrc mzn pnb ps sd ug ur yi".split()}  # noqa: SIM905
    assert language("kas_Deva").rtl is False
    assert language("kas_Arab").rtl is True
