"""A filter of datatrove between its reader and its writer, run in the peer's environment; prints what it took.

datatrove_run.py language DOCUMENTS OUT MODEL CACHE     its language filter, with a local model
datatrove_run.py gopher DOCUMENTS OUT MODEL CACHE       Gopher's quality rules
datatrove_run.py tokens DOCUMENTS OUT TOKENIZER CACHE   its tokens
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
    from datatrove.pipeline.tokens import DocumentTokenizer  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found,unused-ignore]

    if what == "language":
        step = LanguageFilter(language_threshold=0.65)
        step.model.MODEL_URL = model
    else:
        step = GopherQualityFilter()
    reader = JsonlReader(documents, recursive=True, doc_progress=False)
    pipeline = [reader, step, JsonlWriter(out, output_filename="${rank}.jsonl.gz")]
    if what == "tokens":
        tokens = DocumentTokenizer(
            out, tokenizer_name_or_path=model, eos_token="<|endoftext|>", shuffle_documents=False, save_filename="t"
        )
        pipeline = [reader, tokens]
    start = time.process_time()
    LocalPipelineExecutor(pipeline, tasks=1, workers=1, logging_dir=f"{out}.log", skip_completed=False).run()
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
