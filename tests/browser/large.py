"""A large dataset for reports: a million documents, a hundred languages, eighteen scores, all of them made up."""

import json
import random
from pathlib import Path

from isal import igzip

from tests.recipes import mix_of

SHARDS, SCORES = 20, 18
LANGUAGES = """
en de fr es it nl pl pt ru ja zh ar fa he tr vi ko sv fi da no cs hu ro el uk bg sr hr sk sl lt lv et id ms th hi bn
ta te ml kn mr gu pa ur ne si my km lo ka hy az kk uz ky tg mn be mk sq bs is ga cy eu ca gl oc br la eo sw am so ha
yo ig zu xh st tn rw mg tl ceb jv su af nn lb fy li gd mt ku ug sd
""".split()  # noqa: SIM905  (a hundred lines otherwise)
DIFFERENT = 5000
"""Paragraphs, and rows of values, of which documents are put together."""


def lay_out(folder: Path, documents: int) -> Path:
    """Write documents, one set of their values and a configuration with 20 rules, unless they are there; its path."""
    config = folder / "c.yaml"
    if config.exists():
        return config
    lot = random.Random(7)
    words = ["".join(lot.choices("aeioustrnlmkpd", k=lot.randint(2, 10))) for _ in range(DIFFERENT)]
    paragraphs = [" ".join(lot.choices(words, k=lot.randint(5, 60))) for _ in range(DIFFERENT)]
    values = [_values(lot) for _ in range(DIFFERENT)]
    weights = [1 / (place + 1) ** 0.9 for place in range(len(LANGUAGES))]
    for shard in range(SHARDS):
        size = documents * (shard + 1) // SHARDS - documents * shard // SHARDS
        labels = lot.choices(LANGUAGES, weights, k=size)
        texts, sets = [], []
        for row, label in enumerate(labels):
            text = "\\n".join(lot.choices(paragraphs, k=lot.randint(1, 5)))
            host = int(lot.paretovariate(0.7)) % 30_000
            who = f'"id":"{shard}-{row}","source":"cc-{shard % 4}"'
            texts.append(f'{{{who},"text":"{text}","metadata":{{"url":"https://h{host}.example.org/{row}"}}}}\n')
            language = f'{{"label":"{label}","prob":{lot.betavariate(8, 1.5):.4f}}}'
            sets.append(f'{{{who},"attributes":{{"language":{language},"signals":{lot.choice(values)}}}}}\n')
        for place, rows in (("documents", texts), ("attributes/values-0", sets)):
            path = folder / "data" / place / f"{shard:02}.jsonl.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(igzip.compress("".join(rows).encode(), 1))
    rules = [
        {"drop": "language.prob < 0.5", "name": "unsure"},
        {"drop": "document.chars < 100", "name": "short"},
        *({"drop": f"signals.s{i} > {1.05 + i % 5 / 10}", "name": f"high s{i}"} for i in range(SCORES)),
    ]
    mix = mix_of(folder / "out", *rules, attributes=["values-0"], label="language.label")
    config.write_text(json.dumps({"dataset": str(folder / "data"), "processes": 1, "mix": mix}))
    return config


def _values(lot: random.Random) -> str:
    return json.dumps({f"s{i}": round(lot.gammavariate(2, 0.15), 4) for i in range(SCORES)}, separators=(",", ":"))
