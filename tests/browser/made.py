"""A report that is made up: many languages, two runs, and documents that attack whoever shows them."""

import math
import random
from typing import Any, Literal

import msgspec

from toolkit.mix.rule_effects.counts import Totals
from toolkit.report import facts

CANARY = "globalThis.canary = true"
"""What hostile documents try to run; a page of ours never has that name."""

HOSTILE = [
    f"<script>{CANARY}</script><img src=x onerror='{CANARY}'>\n<svg onload=\"{CANARY}\"></svg>",
    f"</script><script>{CANARY}</script><!--<script>\n--></style><style>*{{display:none}}</style>]]>",
    f'" autofocus onfocus="{CANARY}" x="\n\' onmouseover=\'{CANARY}\'\njavascript:{CANARY}',
    "{{ 7 * 7 }} {% raw %} ${7 * 7} #{7} <%= 7 %> [[7]] {{constructor.constructor('return 1')()}}",
    "\u202eright to left\u2066 from here\u202d, \u2067never closed\nthe next line\u2028separator\u2029end",
    "NUL \x00 bell \x07 escape \x1b[31m delete \x7f\r\ncarriage\rreturn\n\ufeffbom \ufffe\uffff",
    "a" * 1_000_000 + "\n" + "<b>" * 3000,
    "=HYPERLINK(\"http://example.org\")\n@SUM(1)\n+1|cmd' /C calc'!A0",
    "<base href='//example.org'><meta http-equiv=refresh content='0;url=//example.org'><link rel=stylesheet href=//e>",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 astral \U00020000 " + "e" + "\u0301" * 400,
]

TEXTS = {
    "en": (
        "English",
        "Latin",
        "The harbour was quiet in the morning.\nBoats came back before noon.\nMenu\nShare this page",
    ),
    "fi": (
        "Finnish",
        "Latin",
        "Satama oli aamulla hiljainen.\nVeneet palasivat ennen puoltapäivää.\nValikko\nJaa tämä sivu",
    ),
    "de": ("German", "Latin", "Der Hafen lag am Morgen still.\nDie Boote kamen vor Mittag zurück.\nImpressum"),
    "ru": ("Russian", "Cyrillic", "Утром в гавани было тихо.\nЛодки вернулись до полудня.\nМеню"),
    "ar": ("Arabic", "Arabic", "كان الميناء هادئا في الصباح.\nعادت القوارب قبل الظهر.\nالقائمة 2026 (email)"),
    "he": ("Hebrew", "Hebrew", "הנמל היה שקט בבוקר.\nהסירות חזרו לפני הצהריים.\nתפריט"),
    "zh": ("Chinese", "Han", "早晨的港口很安静。\n船在中午之前回来了。\n分享此页"),
    "ja": ("Japanese", "Japanese", "朝の港は静かだった。\n船は正午前に戻ってきた。\n共有する"),
    "ko": ("Korean", "Hangul", "아침의 항구는 조용했다.\n배들은 정오 전에 돌아왔다.\n공유하기"),
    "hi": ("Hindi", "Devanagari", "सुबह बंदरगाह शांत था।\nनावें दोपहर से पहले लौट आईं।\nसाझा करें"),
    "th": ("Thai", "Thai", "ท่าเรือเงียบสงบในตอนเช้า\nเรือกลับมาก่อนเที่ยง\nแบ่งปัน"),
    "el": ("Greek", "Greek", "Το λιμάνι ήταν ήσυχο το πρωί.\nΟι βάρκες γύρισαν πριν το μεσημέρι.\nΜενού"),
}
RTL = ("ar", "he", "fa", "ur")
RULES: tuple[tuple[str, str, str, tuple[float, str, Literal["below", "above"]] | None], ...] = (
    ("unidentified", "language.label is None", "", None),
    ("unsure", "language.prob < 0.6", "language.prob", (0.6, "<", "below")),
    ("short", "length.chars < 400", "length.chars", (400.0, "<", "below")),
    ("noisy", "noise.ratio > 0.35", "noise.ratio", (0.35, ">", "above")),
    ("repeats itself", "repeated_ngrams.top_2 > 0.2", "repeated_ngrams.top_2", (0.2, ">", "above")),
    ("duplicate", "duplicate.of is not None", "", None),
)


def report(documents: int = 24_000, languages: int = 80, *, runs: int = 1, hostile: bool = True) -> facts.Report:
    """A report whose numbers fit together, more or less; the same for the same arguments."""
    labels = [*TEXTS, *(f"{first}{second}{third}" for first in "qvx" for second in "abdefghi" for third in "ab")][
        :languages
    ]
    named = {label: _language(label) for label in labels}
    made = [_run(random.Random(seed), f"crawl-{seed}.yaml", labels, documents, hostile=hostile) for seed in range(runs)]
    return facts.Report(
        title="crawl" if not hostile else f"crawl </title><script>{CANARY}</script>",
        toolkit="0.1.0",
        languages=named,
        runs=made,
    )


def encoded(made: facts.Report) -> bytes:
    return msgspec.json.encode(made)


def _language(label: str) -> facts.Language:
    name, script, _ = TEXTS.get(label, (f"Language {label}", "Latin", ""))
    return facts.Language(name=name, script=script, rtl=label in RTL)


def _run(lot: random.Random, name: str, labels: list[str], documents: int, *, hostile: bool) -> facts.Run:
    weights = [1 / (place + 1.5) ** 0.9 for place in range(len(labels))]
    sizes = [max(3, round(documents * weight / sum(weights))) for weight in weights]
    by_label, rules = [], [_rule(each, labels, sizes, lot) for each in RULES]
    for label, size in zip(labels, sizes, strict=True):
        kept = max(0, size - sum(rule.labels.get(label, (0, 0, 0))[0] for rule in rules))
        by_label.append(facts.LabelSizes(label=label, before=sizes_of(size), after=sizes_of(kept)))
    rows, kept = sum(sizes), sum(each.after.documents for each in by_label)
    samples = [_sample(place, labels[place % len(labels)], lot) for place in range(max(60, 4 * len(labels)))]
    if hostile:
        samples[:0] = [_hostile(place, text) for place, text in enumerate(HOSTILE)]
    run = facts.Run(
        name=name,
        dataset="data/crawl",
        output="data/oscar",
        mixed=True,
        config="".join(["dataset: data/crawl\nmix:\n  rules:\n", *map(_written, RULES), f"# {name}\n"]),
        versions=[facts.Named(name="toolkit", version="0.1.0"), facts.Named(name="python", version="3.11.2")],
        models=[facts.Model(name="lid.176.ftz", sha256="8f34" * 16)],
        sets=[
            facts.SetMade(
                set="language-0",
                keys={"language": "{label: str | null, prob: float}"},
                settings={"language": {"lines": "lines-0"}},
            )
        ],
        came_in=[
            facts.Input(
                source="cc", inputs=12, documents=rows, bytes=812_000_000, rejected={"too short": 812, "bad UTF-8": 7}
            )
        ],
        stages=[
            facts.StageWork(stage=stage, set=made, documents=rows, bytes=rows * 4100, seconds=seconds)
            for stage, made, seconds in (
                ("ingest", "", 41.2),
                ("tag", "lines-0", 92.4),
                ("tag", "language-0", 3.1),
                ("mix", "", 17.9),
            )
        ],
        totals=Totals(rows=rows, chars=rows * 3100, kept=kept, kept_chars=kept * 3600),
        labels=by_label,
        rules=rules,
        groups=[_groups(by, lot, rows) for by in ("source", "host", "tld")],
        duplicates=[
            facts.Duplicates(
                set="near-0",
                kind="near",
                documents=rows,
                dropped=rows // 9,
                clusters=[(2, 800), (3, 210), (4, 44), (17, 2)],
            )
        ],
        orphans=[facts.Orphans(rule=rules[0].name, set="near-0", documents=1234)],
        budget=facts.Budget(
            unit="tokens",
            redistributed=True,
            groups=[
                facts.BudgetGroup(
                    group=label,
                    available=9e6 / (place + 1),
                    wanted=1e6,
                    taken=min(1e6, 9e6 / (place + 1)),
                    documents=900 // (place + 1),
                    copies=0,
                )
                for place, label in enumerate(labels[:9])
            ],
        ),
        lengths=_lengths(labels, sizes, by_label, lot),
        scores=_scores(labels, sizes, lot),
        spans=[
            facts.Spans(
                field=field,
                set="pii-0",
                pii=True,
                labels={
                    label: (size // part + 1, size // part * 2 + 1, size // part * 40 + 20)
                    for label, size in zip(labels, sizes, strict=True)
                },
            )
            for field, part in (("emails", 9), ("ip_addresses", 70), ("phone_numbers", 22))
        ],
        samples=samples,
        pairs=[_pair(label) for label in [*TEXTS][:10]],
    )
    own = len(HOSTILE) if hostile else 0
    run.drawn = {
        label: [place for place in range(own, len(samples)) if samples[place].label == label][:4] for label in labels
    }
    run.drawn[labels[0]][:0] = range(own)
    run.of_rules = [_of_rule(each, run) for each in RULES]
    return run


def _written(rule: tuple[Any, ...]) -> str:
    return f"    - drop: {rule[1]}\n      name: {rule[0]}\n"


def sizes_of(documents: int) -> facts.Sizes:
    return facts.Sizes(
        documents=documents,
        chars=documents * 3100,
        bytes=documents * 4100,
        lines=documents * 40,
        words=documents * 510,
        tokens=documents * 730,
    )


def _rule(rule: tuple[Any, ...], labels: list[str], sizes: list[int], lot: random.Random) -> facts.RuleFacts:
    found = {}
    for label, size in zip(labels, sizes, strict=True):
        hit = int(size * lot.uniform(0.01, 0.16))
        if hit:
            found[label] = (hit, hit * 900, hit // 3)
    documents, chars, unique = (sum(each[place] for each in found.values()) for place in range(3))
    return facts.RuleFacts(
        name=rule[0],
        kind="drop",
        expression=rule[1],
        role="drops",
        reached=sum(sizes),
        documents=documents,
        chars=chars,
        unique=unique,
        labels=found,
    )


def _groups(by: str, lot: random.Random, rows: int) -> facts.LargestGroups:
    values: list[str | None] = {
        "source": ["cc"],
        "host": [None, *(f"www{place}.example.org" for place in range(40))],
        "tld": ["org", "fi", "com", "рф", "中国", "net"],
    }[by]  # type: ignore[assignment]
    top = [
        facts.Group(value=value, before=sizes_of(size := rows // (place + 3)), after=sizes_of(int(size * lot.random())))
        for place, value in enumerate(values)
    ]
    return facts.LargestGroups(
        by=by,
        values=len(values) + 900,
        top=top,
        rest=facts.Group(value=None, before=sizes_of(rows // 4), after=sizes_of(rows // 7)),
    )


def _spread(total: int, bins: int, middle: float, width: float, lot: random.Random) -> list[int]:
    weights = [math.exp(-(((place - middle) / width) ** 2)) * lot.uniform(0.8, 1.2) + 0.002 for place in range(bins)]
    counts = [int(total * weight / sum(weights)) for weight in weights]
    counts[int(middle)] += total - sum(counts)
    return counts


def _lengths(
    labels: list[str], sizes: list[int], by_label: list[facts.LabelSizes], lot: random.Random
) -> facts.Lengths:
    edges = [float(round(10 * 10 ** (place / 8))) for place in range(41)]
    before = {label: _spread(size, 40, lot.uniform(16, 22), 5, lot) for label, size in zip(labels, sizes, strict=True)}
    after = {
        each.label: [
            round(count * each.after.documents / max(1, each.before.documents)) for count in before[each.label]
        ]
        for each in by_label
    }
    return facts.Lengths(edges=edges, before=before, after=after)


def _scores(labels: list[str], sizes: list[int], lot: random.Random) -> list[facts.Score]:
    made = []
    for name, _, field, mark in RULES:
        if mark is None:
            continue
        value, sign, drops = mark
        edges = (
            [place / 50 for place in range(51)]
            if value < 1
            else [float(round(10 * 10 ** (place / 10))) for place in range(51)]
        )
        middle = 38.0 if drops == "below" and value < 1 else 25.0 if drops == "below" else 8.0
        counts = {
            label: _spread(size, 50, middle + lot.uniform(-3, 3), 8, lot)
            for label, size in zip(labels, sizes, strict=True)
        }
        at = sum(edge < value for edge in edges[:-1])
        holds = {label: sum(each[:at] if sign == "<" else each[at:]) for label, each in counts.items()}
        after = {
            label: [0 if (place < at) == (drops == "below") else round(0.7 * count) for place, count in enumerate(each)]
            for label, each in counts.items()
        }
        made.append(
            facts.Score(
                field=field,
                set=f"{field.partition('.')[0]}-0",
                edges=edges,
                counts=counts,
                after=after,
                nulls={labels[0]: 12},
                marks=[
                    facts.Mark(
                        rule=name, value=value, sign=sign, drops=drops, text=f"{field} {sign} {value:g}", holds=holds
                    )
                ],
                description="What the tagger says of it.",
            )
        )
    made.append(
        facts.Score(
            field="perplexity.value",
            set="perplexity-0",
            edges=[float(2**place) for place in range(20)],
            counts={label: _spread(size, 19, 9, 3, lot) for label, size in zip(labels, sizes, strict=True)},
            exact=False,
        )
    )
    return made


def _sample(place: int, label: str, lot: random.Random) -> facts.Sample:
    text = "\n".join([TEXTS.get(label, TEXTS["en"])[2]] * (1 + place % 5)) + "\nwrite to someone@example.org"
    count = text.count("\n") + 1
    lines = [facts.Line(label if lot.random() < 0.8 else "en", round(lot.uniform(0.4, 1), 3)) for _ in range(count)]
    at = len(text) - len("someone@example.org")
    name, _, field, mark = RULES[1 + place // 2 % 4]
    assert mark is not None
    value, _, drops = mark
    share = lot.uniform(0, 0.2) * (1 if (drops == "below") == (place % 2 == 0) else -1)
    return facts.Sample(
        shard=f"cc/{place % 7}.jsonl.gz",
        row=place + 1,
        id=f"<urn:uuid:{place:08x}>",
        source="cc",
        url=f"https://www{place % 40}.example.org/{place}",
        label=label,
        chars=len(text),
        text=text,
        dropped_by=name if place % 2 else "",
        would_drop=["short"] if place % 6 == 1 else [],
        values={field: round(value * (1 + share), 3)},
        lines=lines,
        spans=[facts.Marked("emails", at, len(text)), facts.Marked("names", at - 3, at + 7, 0.83)],
        header=1,
        footer=1,
    )


def _hostile(place: int, text: str) -> facts.Sample:
    name = f"<img src=x onerror={CANARY}>\u202e{place}"
    return facts.Sample(
        shard=name,
        row=place + 1,
        id=name,
        source=name,
        url=f"javascript:{CANARY}" if place % 2 else f'https://example.org/"><script>{CANARY}</script>',
        label="en",
        chars=len(text) + 5,
        text=text,
        dropped_by="" if place % 2 else "short",
        would_drop=[name],
        values={name: name, "x": None, "constructor": [name]},
        lines=[facts.Line(name, 0.5)],
        spans=[facts.Marked(name, 0, 7), facts.Marked("emails", 3, 12), facts.Marked("emails", 5, 10_000_000)],
        header=1,
    )


def _pair(label: str) -> facts.Pair:
    text = "\n".join([TEXTS[label][2]] * 12)
    one = facts.PairText(
        shard="cc/1.jsonl.gz", row=3, id=f"{label}-1", label=label, chars=len(text), text=text, kept=True
    )
    other = facts.PairText(
        shard="cc/4.jsonl.gz",
        row=81,
        id=f"{label}-2",
        label=label,
        chars=len(text),
        text=text.replace("\n", " — ", 1) + " 2026",
        kept=False,
    )
    return facts.Pair(set="near-0", one=one, other=other, similarity=0.87, cluster=3)


def _of_rule(rule: tuple[Any, ...], run: facts.Run) -> facts.RuleSamples:
    name, _, field, mark = rule
    met = [place for place, sample in enumerate(run.samples) if not field or field in sample.values]
    dropped = [place for place in met if run.samples[place].dropped_by == name]
    kept = [place for place in met if not run.samples[place].dropped_by]
    by_label = {label: [place for place in dropped if run.samples[place].label == label][:10] for label in [*TEXTS]}
    return facts.RuleSamples(
        rule=name,
        field=field,
        value=mark[0] if mark else None,
        dropped=dropped[:8],
        kept=kept[:8],
        labels={label: places for label, places in by_label.items() if places},
    )
