"""Values do not depend on the processor: those of plain vectors and of the widest ones are the same, bit for bit."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.text.fasttext_models import KINDS, KNOWN, ODD, trained
from toolkit.data.documents import Document
from toolkit.storage import models
from toolkit.text.fasttext.model import FastTextModel

pytestmark = pytest.mark.slow

TEXTS = [
    *ODD,
    *(" ".join(KNOWN[i : i + 7]) for i in range(0, len(KNOWN), 3)),
    "The library opens at nine.\nIt is closed on Sundays, the second and the fourth of each month.",
    "La bibliothèque ouvre à neuf heures. Elle est fermée le dimanche, la bibliothèque !",
    "Die Tür ist offen, das Fenster auch.\n- eins\n- zwei\n- zwei",
]
TAGGERS = ("statistics", "redpajama", "gopher_quality", "gopher_repetition", "c4", "fineweb", "line_shape", "noise")

CODE = "from tests.text.test_processors import digests; digests({arguments!r})"


def digests(paths: list[str]) -> None:
    """Print a digest of all predictions of each model, and of all values of each tagger."""
    from toolkit.tag.tagger import TAGGERS as KIND
    from toolkit.text.batch import Batch

    found: dict[str, Any] = {}
    for path in paths:
        model = FastTextModel(path)
        predicted = [model.predict([text.replace("\n", " ") for text in TEXTS], k=k) for k in (1, 4)]
        found[path] = [[(each.label, each.prob) for each in row] for rows in predicted for row in rows]
    for name in TAGGERS:
        documents = [Document(id=str(i), source="s", text=text) for i, text in enumerate(TEXTS)]
        found[name] = msgspec.to_builtins(list(KIND.find(name)().tag_batch(Batch(documents))))
    print(json.dumps({name: hashlib.sha256(json.dumps(value).encode()).hexdigest() for name, value in found.items()}))


def test_plain_and_wide_vectors_give_the_same_values(tmp_path: Path) -> None:
    paths = [trained(tmp_path / f"{i}.bin", **kind) for i, kind in enumerate(KINDS.values())]
    paths.append(models.resolve("lid.176.ftz"))
    given = np._core._multiarray_umath  # type: ignore[attr-defined]  # nothing public says what numpy may be told
    wide = [name for name in given.__cpu_dispatch__ if given.__cpu_features__[name]]
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": " ".join(wide),
        "TOOLKIT_CACHE": str(tmp_path / "cache"),
    }
    told = [
        subprocess.run(
            [sys.executable, "-c", CODE.format(arguments=paths)],
            env=os.environ | more, stdout=subprocess.PIPE, text=True, check=True,
        ).stdout
        for more in ({}, plain)
    ]  # fmt: skip
    of_plain, of_wide = map(json.loads, told)
    assert of_plain == of_wide
    assert len(of_plain) == len(paths) + len(TAGGERS)
    assert list((tmp_path / "cache").rglob("*.o")), "code for plain vectors was made"
