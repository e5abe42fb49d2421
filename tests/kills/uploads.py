"""Signals that meet a command while it uploads an object in parts.

At random moments such signals are rare: an upload of the small corpus takes milliseconds. So here the proxy before the
bucket sends the signal, when a request of an upload comes that is drawn from all of these that the command makes. This
request reaches the server, or is lost.
"""

import random
from collections.abc import Iterator

from tests.faults.columns import COLUMNS, Column
from tests.faults.places import Strike
from tests.kills.rounds import Campaign, Round, Struck, drawn, several
from tests.storage.servers import Asked

REQUESTS = ("CREATE", "UPLOAD", "COMPLETE")
"""Of a multipart upload."""


def play(campaign: Campaign, column: Column, processes: int, chance: random.Random) -> Round | None:
    """Play a round; None if the command uploads nothing in parts."""
    bench, bucket = campaign.bench, campaign.bench.bucket
    assert bucket
    column = several(column.name, processes)
    undisturbed, requests = bench.undisturbed(bucket, column)
    count = sum(number for (what, _), number in requests.items() if what in REQUESTS)
    if not count:
        return None
    bucket.restore(undisturbed.before)
    number, arrives, sent = chance.randrange(count), chance.random() < 0.5, drawn(processes, chance, None)
    seen: list[Asked] = []

    def watch(asked: Asked) -> str:
        if asked.what not in REQUESTS:
            return ""
        seen.append(asked)
        if len(seen) != number + 1:
            return ""
        bench.warm.send(sent)
        return "" if arrives else "reset"

    bench.warm.signal, bucket.watch = sent, watch
    try:
        ran = bench.run(bucket, column, Strike())
    finally:
        bucket.watch = None
    return campaign.judged(Struck(column, "bucket", processes, sent, 0), ran) if len(seen) > number else None


def rounds(campaign: Campaign, signals: int, seed: int, names: list[str]) -> Iterator[Round]:
    """Yield so many rounds, or fewer if none of the commands uploads in parts; in an order that is drawn."""
    chance, played = random.Random(seed), 0
    columns = [column for column in COLUMNS if not names or column.name in names]
    while columns and played < signals:
        for column in chance.sample(columns, len(columns)):
            processes = 2 if column.configured and chance.random() < 0.25 else 1
            found = play(campaign, column, processes, chance)
            if found is None:
                columns.remove(column)
                continue
            yield found
            played += 1
            if played == signals:
                return
