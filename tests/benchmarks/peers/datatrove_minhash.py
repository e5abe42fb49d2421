"""datatrove's four MinHash stages, run in the peer's environment; prints what each took, in seconds of CPU.

datatrove_minhash.py DOCUMENTS OUT
"""

import json
import os
import sys
import time


def main(documents: str, out: str) -> None:
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.dedup import (  # type: ignore[import-not-found,unused-ignore]
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.readers import JsonlReader  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found,unused-ignore]

    config = MinhashConfig(num_buckets=14, hashes_per_bucket=8, n_grams=5)

    def read() -> JsonlReader:
        return JsonlReader(documents, recursive=True, doc_progress=False)

    at = {name: os.path.join(out, name) for name in ("signatures", "buckets", "remove", "kept", "removed")}
    stages = {
        "signatures": (1, [read(), MinhashDedupSignature(at["signatures"], config=config)]),
        "buckets": (14, [MinhashDedupBuckets(at["signatures"], at["buckets"], config=config)]),
        "cluster": (1, [MinhashDedupCluster(at["buckets"], at["remove"], config=config)]),
        "filter": (1, [read(), MinhashDedupFilter(at["remove"], exclusion_writer=JsonlWriter(at["removed"])),
                       JsonlWriter(at["kept"])]),
    }  # fmt: skip
    took = {}
    for name, (tasks, pipeline) in stages.items():
        start = time.process_time()
        LocalPipelineExecutor(
            pipeline, tasks=tasks, workers=1, logging_dir=os.path.join(out, f"log-{name}"), skip_completed=False
        ).run()
        took[name] = time.process_time() - start
    print(json.dumps({"seconds": sum(took.values()), "stages": took}))


if __name__ == "__main__":
    main(*sys.argv[1:])
