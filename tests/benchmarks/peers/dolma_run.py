"""Dolma in one process, run in the peer's environment; prints what it took without start-up.

dolma_run.py tag MODEL DOCUMENTS SET    its fastText tagger of paragraphs, with a local model
dolma_run.py run TAGGER DOCUMENTS SET   one of its taggers
dolma_run.py mix CONFIG                 its mixer
dolma_run.py dedupe CONFIG              its deduper
dolma_run.py tokens DATASET OUT TOKENIZER   its tokens
"""

import json
import sys
import time

from dolma import add_tagger  # type: ignore[import-not-found,unused-ignore]
from dolma.cli.main import main as dolma  # type: ignore[import-not-found,unused-ignore]
from dolma.taggers.language import (  # type: ignore[import-not-found,unused-ignore]
    FastTextAllLanguageParagraphTagger,
)

TAGGER = "ft_lang_id_paragraph_local"


def _line(documents: str, tagger: str, name: str) -> list[str]:
    """With ``--debug``: in this process and without a queue."""
    return ["tag", "--documents", documents, "--taggers", tagger, "--experiment", name, "--debug"]


def main(command: str, *arguments: str) -> None:
    if command == "tag":
        model, documents, name = arguments

        @add_tagger(TAGGER)  # type: ignore[misc,untyped-decorator,unused-ignore]
        class Local(FastTextAllLanguageParagraphTagger):  # type: ignore[misc,unused-ignore]
            MODEL_PATH = model

        line = _line(documents, TAGGER, name)
    elif command == "run":
        tagger, documents, name = arguments
        line = _line(documents, tagger, name)
    elif command == "tokens":
        root, out, tokenizer = arguments
        line = ["tokens", "--documents", f"{root}/documents/*/*.gz", "--destination", out, "--processes", "1"]
        line += ["--tokenizer.name_or_path", tokenizer, "--tokenizer.eos_token_id", "0"]
        line += ["--tokenizer.pad_token_id", "0", "--dtype", "uint16", "--max_size", str(100_000_000)]
    else:
        line = ["-c", *arguments, command]
    start = time.process_time()
    dolma(line)
    print()  # its log may end without
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
