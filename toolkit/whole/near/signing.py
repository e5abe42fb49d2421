"""Step 1, per shard: the signatures of documents as they are kept.

``rows``       12 bytes a row: how many shingles it has, 0 if it is not compared (uint32); its order (float64)
``keys``       8 bytes a band and row: the keys, row by row
``sorted-N``   sections (see `sections`), by the upper bits of the key: 12 bytes a key of a row that is compared, key
               (uint64) and row (uint32); sorted runs of at most `RUN` of them
``shingles``   only if they are to be stored: 8 bytes a shingle of a row that is compared, repeated ones too
``groups…``    see `toolkit.whole.losses`
"""

from typing import TYPE_CHECKING, Any

from toolkit.storage.outputs import RowOutput
from toolkit.whole import losses
from toolkit.whole.competing import seed_of
from toolkit.whole.kind import Block, Files, Kind, Signer
from toolkit.whole.near.signatures import Signer as Signing
from toolkit.whole.sections import starts_of

if TYPE_CHECKING:
    from toolkit.text.kernels.signatures import Array

ROW = [("shingles", "<u4"), ("order", "<f8")]
KEY = [("key", "<u8"), ("row", "<u4")]

SHINGLES = "shingles"

PREFIXES = 1024
"""Ranges of keys that can be read by themselves."""

RUN = 1 << 20
"""Keys that are held until they are sorted and written."""


class NearSigner(Signer):
    """Writes the signatures of one shard.

    Args:
        kind: configured.
        files: what it writes to.
        signing: makes signatures.
        stores_shingles: whether shingles are kept, too.
    """

    def __init__(self, kind: Kind, files: Files, signing: Signing, *, stores_shingles: bool = False) -> None:
        super().__init__(kind, files)
        self._signing = signing
        self._stored = files.open(SHINGLES) if stores_shingles else None
        self._rows, self._keys = files.open("rows"), files.open("keys")
        self._held: list[Array] = []
        self._groups = RowOutput(files.path(losses.FILE))
        files.add(losses.FILE, self._groups)
        self._size = self._runs = self._short = self._shingles = self._compared = 0

    def add(self, block: Block) -> None:
        import numpy as np

        competes = np.array(block.competes, dtype=bool)
        if competes.all():
            found = self._signing.of_words(block.documents.words())
        else:
            pairs = zip(block.documents, block.competes, strict=True)
            found = self._signing.of([document.utf8 if asked else b"" for document, asked in pairs])
        rows = np.zeros(len(competes), dtype=ROW)
        rows["shingles"] = np.where(found.enough, found.shingles, 0)
        if "keep" in block.values:
            rows["order"] = [0 if value is None else value for value in block.values["keep"]]
        keys = found.keys
        if "scope" in block.values:
            keys ^= np.array([seed_of(value) for value in block.values["scope"]], dtype=np.uint64)[:, None]
            keys[~found.enough] = 0
        self._rows.write(rows.tobytes())
        self._keys.write(keys.astype("<u8").tobytes())
        if self._stored:
            hashes = found.hashes[np.repeat(found.enough, found.shingles)]
            self._stored.write(hashes.astype("<u8", copy=False).tobytes())
        self._short += int((competes & ~found.enough).sum())
        self._shingles += int(found.shingles.sum())
        languages = block.values.get("language") or [None] * len(competes)
        self._groups.write_rows(
            losses.groups_row(document, language) if enough else b"null"
            for document, language, enough in zip(block.documents, languages, found.enough, strict=True)
        )
        self._compared += int(found.enough.sum())
        entries = np.empty((int(found.enough.sum()), keys.shape[1]), dtype=KEY)
        entries["key"] = keys[found.enough]
        entries["row"] = (block.first + np.flatnonzero(found.enough))[:, None]
        self._held.append(entries.reshape(-1))
        self._size += entries.size
        if self._size >= RUN:
            self._sort()

    def _sort(self) -> None:
        import numpy as np

        if not self._held:
            return
        entries = np.concatenate(self._held)
        entries = entries[np.argsort(entries["key"], kind="stable")]
        edges = np.arange(PREFIXES, dtype=np.uint64) << np.uint64(54)
        places = np.append(np.searchsorted(entries["key"], edges), len(entries))
        output = self.files.open(f"sorted-{self._runs}")
        output.write(starts_of(np.diff(places) * entries.itemsize))
        output.write(entries.tobytes())
        self._held, self._size = [], 0
        self._runs += 1

    def finish(self) -> tuple[dict[str, int], Any]:
        self._sort()
        counts = {"compared": self._compared, "short": self._short, "shingles": self._shingles}
        return counts, self._runs
