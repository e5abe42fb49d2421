"""What plays faults by hand: the matrix (`tests.faults`), signals (`tests.kills`), power cuts (`tests.power`)."""

import argparse
import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS
from tests.faults.places import Bucket, Cloud
from tests.faults.warm import Warm
from tests.learn.annotate.server import serving
from tests.storage.servers import Azurite, Gcs, Seaweed


@contextlib.contextmanager
def bench(folder: Path, server: Seaweed | Gcs | Azurite | None) -> Iterator[Bench]:
    """What is played on, in a folder, with a server of language models, and one of a store if there is one."""
    with Warm() as warm, serving() as models:
        bucket = None
        if server:
            bucket = Bucket(server, folder) if isinstance(server, Seaweed) else Cloud(server, folder)
        try:
            yield Bench(warm, folder, bucket, models.url)
        finally:
            if bucket:
                bucket.close()


def parser(package: str, description: str | None) -> argparse.ArgumentParser:
    """The command line of a package, with the columns that are wanted."""
    found = argparse.ArgumentParser(prog=f"python -m {package}", description=description)
    found.add_argument("--column", action="append", choices=[column.name for column in COLUMNS])
    return found


class Driver:
    """Plays on a bench of its own until the end, or an interruption: what was played until then is shown."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    @contextlib.contextmanager
    def playing(self, *, on_bucket: bool, cloud: str = "s3") -> Iterator[Bench]:
        """A bench in a new folder, and in a bucket if that is wanted."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server: Seaweed | Gcs | Azurite | None = None
            if on_bucket:
                server = {"s3": Seaweed, "gs": Gcs, "az": Azurite}[cloud](folder / "server")
                if isinstance(server, Seaweed):
                    server.start()
                stack.callback(server.kill)
            found = stack.enter_context(bench(folder, server))
            stack.enter_context(contextlib.suppress(KeyboardInterrupt))
            yield found

    def ended(self, played: str, wrong: int) -> int:
        """Tell how much was played; the status of the process."""
        print(f"{played}, {wrong} judged wrong, {time.monotonic() - self._begin:.0f} s")
        return int(wrong > 0)
