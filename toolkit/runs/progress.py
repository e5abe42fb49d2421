"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from toolkit.errors import amount

LINE_SECONDS = 10.0


class Progress:
    """Counts shards (or other tasks), documents and bytes of one stage.

    Args:
        what: the stage.
        total: tasks.
        unit: what tasks are.
        quiet: show nothing.
    """

    def __init__(self, what: str, total: int, unit: str = "shards", *, quiet: bool = False) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = self.documents = self.bytes = 0
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Self:
        if self._terminal and not self._quiet:
            from tqdm import tqdm

            self._bar = tqdm(total=self.total, desc=self.what, unit=f" {self.unit}", file=sys.stderr, leave=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._quiet:
            return
        if self._terminal:
            self._bar.close()
        self._line("done" if kind is None else "stopped")

    def report(self, documents: int, size: int) -> None:
        """Add documents and uncompressed bytes that were done since the last call."""
        self.documents += documents
        self.bytes += size
        self._show()

    def advance(self) -> None:
        """Count a task that is finished."""
        self.done += 1
        if self._terminal and not self._quiet:
            self._bar.update()
        self._show()

    def _show(self) -> None:
        if self._quiet:
            return
        if self._terminal:
            self._bar.set_postfix_str(f"{amount(self.documents, 'document')}, {self._rate():.1f} MB/s", refresh=False)
        elif time.monotonic() - self._last > LINE_SECONDS:
            self._last = time.monotonic()
            self._line("")

    def _rate(self) -> float:
        return self.bytes / 1e6 / max(time.monotonic() - self._start, 1e-9)

    def _line(self, state: str) -> None:
        seconds = time.monotonic() - self._start
        left = "" if state or not self.done else f", about {seconds / self.done * (self.total - self.done):.0f} s left"
        text = f"{self.what}: {self.done}/{self.total} {self.unit}, {amount(self.documents, 'document')}"
        if self.bytes:
            text += f", {self._rate():.1f} MB/s"
        print(f"{text}, {seconds:.1f} s{left}{' ' + state if state else ''}", file=sys.stderr, flush=True)
