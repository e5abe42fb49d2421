"""A filter of datatrove between its reader and its writer, run in the peer's environment; prints what it took.

datatrove_run.py language DOCUMENTS OUT MODEL CACHE     its language filter, with a local model
datatrove_run.py gopher DOCUMENTS OUT MODEL CACHE       Gopher's quality rules
"""

import json
import os
import sys
import time


def main(what: str, documents: str, out: str, model: str, cache: str) -> None:
    os.environ["HF_ASSETS_CACHE"] = cache  # where datatrove keeps a copy of the model; read when it is imported
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.filters import (  # type: ignore[import-not-found,unused-ignore]
        GopherQualityFilter,
        LanguageFilter,
    )
    from datatrove.pipeline.readers import JsonlReader  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found,unused-ignore]

    if what == "language":
        step = LanguageFilter(language_threshold=0.65)
        step.model.MODEL_URL = model
    else:
        step = GopherQualityFilter()
    reader = JsonlReader(documents, recursive=True, doc_progress=False)
    pipeline = [reader, step, JsonlWriter(out, output_filename="${rank}.jsonl.gz")]
    start = time.process_time()
    LocalPipelineExecutor(pipeline, tasks=1, workers=1, logging_dir=f"{out}.log", skip_completed=False).run()
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
