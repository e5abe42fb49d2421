"""Write what datatrove makes of sentences of ours, for tests: a sample of words for each of its tokenizers by rules.

    PEER/bin/python tests/oracles/tables/words.py OUT.json

PEER is an environment of tests/oracles/peers/fineweb-2.txt; nothing of this project is imported.
"""

import csv
import json
import random
import sys
from pathlib import Path

TABLE = Path(__file__).parent.parent.parent.parent / "toolkit" / "text" / "tables" / "tokenizers-datatrove-0.10.1.tsv"
LIBRARIES = {"ja", "zh", "vi"}
PIECES = """
l'eau aujourd'hui anti-âge porte-clé-de-voûte d'abord J.-C. z.B. Dr. usw. Haus-Tür 3. 3.5% 5km 10.000,50€ US$7 20°C.
p.ej. D.ª EE.UU. bl.a. f.eks. 10-årig t.ex. e-mail don't can't it's Mr. a.m. vs. npr. god. г. т.д. тис. и т.п. 5-го
π.χ. κ.λπ. 5mg α-β-γ 'ναι' kb. pl. 5-ös 10%-kal A-B. anak-anak ke-2 S$5 <a>b Tn. dll. T.C.'de 10,5 Prof. 'den Ankara'ya
घर, किताब। १०.५ 12/05/2020 गाँव॥ گھر، کتاب۔ 5:30 بیت، كتاب؟ (5كم) ቤት፡ መጽሐፍ። բառ։ שָׁלוֹם "צה״ל"
http://a.de/x,y?z=1, www.b.com.
c@d.org :-) (^_^) ... …… -- — – « mot » „Wort“ 'n 't '60s O'Neill dell'arte un'idea c'è po' s-a într-un 'a 's-Gravenhage
U.S.A. 1,2,3 a/b a:b x=y well.Then #tag @user 😀😀 ✓ \u200d ß ΐ İ ﬁ _ * + ~ | \\ ^ ` { } [ ]
< >
"""


def main() -> None:
    """Write texts by the code of a tokenizer's kind, with their words."""
    from datatrove.utils.word_tokenizers import load_word_tokenizer  # type: ignore[import-not-found,unused-ignore]

    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    labels = dict[tuple[str, str], str]()
    for row in rows:
        if row["kind"] in ("SpaCy", "IndicNLP", "Whitespace") and row["code"] not in LIBRARIES:
            labels.setdefault((row["kind"], row["code"]), row["label"])
    pieces = [
        each.encode().decode("unicode_escape") if each[0] == "\\" and each[1:] else each for each in PIECES.split()
    ]
    found = []
    for label in sorted(labels.values()):
        chance = random.Random(label)
        tokenizer = load_word_tokenizer(label)
        for size in (1, 4, 60, 120):
            text = "".join(chance.choice(pieces) + chance.choice(("", " ", " ", " ", "  ", "\n")) for _ in range(size))
            found.append({"label": label, "text": text, "words": tokenizer.word_tokenize(text)})
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in found)
    Path(sys.argv[1]).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
