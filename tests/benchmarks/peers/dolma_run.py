"""Dolma in one process, run in the peer's environment; prints what it took without start-up.

dolma_run.py tag MODEL DOCUMENTS SET    its fastText tagger of paragraphs, with a local model
dolma_run.py mix CONFIG                 its mixer
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


def main(command: str, *arguments: str) -> None:
    if command == "tag":
        model, documents, name = arguments

        @add_tagger(TAGGER)  # type: ignore[misc,untyped-decorator,unused-ignore]
        class Local(FastTextAllLanguageParagraphTagger):  # type: ignore[misc,unused-ignore]
            MODEL_PATH = model

        # debug: in this process, without a queue
        line = ["tag", "--documents", documents, "--taggers", TAGGER, "--experiment", name, "--debug"]
    else:
        line = ["-c", *arguments, "mix"]
    start = time.process_time()
    dolma(line)
    print()  # its log may end without
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
