"""Write which tokenizer datatrove gives each language, and GlotLID's label of each label of lid.176.

    PEER/bin/python tests/oracles/tables/languages.py FOLDER

PEER is an environment with datatrove 0.10 (tests/oracles/peers/fineweb-2.txt); nothing of this project is imported.
It writes `tokenizers-datatrove-0.10.1.tsv` (GlotLID's label, kind of tokenizer, its code; Apache-2.0, see NOTICE) and
`lid.176-glotlid.tsv` (label of lid.176, label of GlotLID, why).
"""

import csv
import sys
from pathlib import Path

LID = (
    "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da de "
    "diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo "
    "io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms "
    "mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn "
    "sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf "
    "yi yo yue zh"
)
OTHERWISE = {
    "als": ("gsw_Latn", "Wikipedia's als is Alemannic; als is Tosk Albanian in ISO 639-3"),
    "bh": ("bho_Deva", "Wikipedia's bh is Bhojpuri"),
    "gom": ("gom_Deva", "Wikipedia's gom is in Devanagari"),
    "ku": ("kmr_Latn", "Wikipedia's ku is Northern Kurdish"),
    "no": ("nob_Latn", "Wikipedia's no is Bokmål"),
    "qu": ("quy_Latn", "a group of languages; Ayacucho Quechua is the most written"),
    "sh": ("srp_Latn", "a group of languages, most of it in Latin letters; FineWeb-2 has no hbs_Latn"),
    "tl": ("fil_Latn", "GlotLID's and FineWeb-2's name"),
}
"""Where datatrove's table does not say it, or says something else than Wikipedia's codes, by which lid.176 goes."""


def main() -> None:
    """Write both tables."""
    import datatrove

    table = Path(datatrove.__file__).parent / "assets" / "tokenizer_assignment.csv"
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    kinds = dict[str, str]()
    for row in rows:
        if row["type"]:
            kind = row["type"].removesuffix("Tokenizer")
            kinds.setdefault(f"{row['code_3']}_{row['script']}", f"{kind}\t{row['tok_code']}")
    folder = Path(sys.argv[1])
    lines = [f"{label}\t{kind}\n" for label, kind in sorted(kinds.items())]
    (folder / "tokenizers-datatrove-0.10.1.tsv").write_text("label\tkind\tcode\n" + "".join(lines), encoding="utf-8")

    lines = []
    for label in LID.split():
        found, why = OTHERWISE.get(label, ("", ""))
        if not found:
            usual = [row for row in rows if row["default_script"] == "TRUE" and row["type"]]
            two = [row for row in usual if row["code_1"] == label and row["default_code_1"] == "TRUE"]
            (row,) = two or [row for row in usual if row["code_3"] == label]
            found, why = f"{row['code_3']}_{row['script']}", "datatrove's usual language and script of the code"
        assert found in kinds, found
        lines.append(f"{label}\t{found}\t{why}\n")
    (folder / "lid.176-glotlid.tsv").write_text("label\tglotlid\twhy\n" + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
