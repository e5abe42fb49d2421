"""A slow disk: a file system of its own, whose reads and writes the kernel throttles. It needs root, and Linux.

Its image lies in memory, so what is slow is the throttle alone: bytes a second and requests a second, of reads and of
writes (cgroup v1, ``blkio.throttle``, which at the root also counts what is written back later). Requests are as large
as the kernel makes them; one that is read or written where the head is not costs no more here than one that is.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.peers import MissingPeer

THROTTLE = Path("/sys/fs/cgroup/blkio")
IMAGE = Path("/dev/shm")
READ_AHEAD = 8192
"""Sectors: requests of reads can be as large as those of writes."""


class SlowDisk:
    """A file system until this process ends.

    Args:
        size: bytes of it.
        rate: bytes a second that it reads, and as many that it writes.
        seeks: requests a second, likewise.

    Raises:
        MissingPeer: if it cannot be made here.
    """

    def __init__(self, size: int, rate: int, seeks: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="slow-disk-"))
        self._image = IMAGE / f"{self.path.name}.img"
        self._limits = {"bps": rate, "iops": seeks}
        self._loop = ""
        atexit.register(self._remove)
        try:
            with self._image.open("wb") as stream:
                stream.truncate(size)
            _run("mkfs.ext4", "-q", self._image)
            self._loop = _run("losetup", "--find", "--show", self._image)
            _run("blockdev", "--setra", READ_AHEAD, self._loop)
            self._throttle(self._limits)
            _run("mount", self._loop, self.path)
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingPeer(f"no slow disk here (it needs root, loop devices and blkio.throttle): {error}") from None

    def forget(self) -> None:
        """Write what is to be written, and forget what has been read."""
        self._throttle(dict.fromkeys(self._limits, 0))
        _run("umount", self.path)
        _run("mount", self._loop, self.path)
        self._throttle(self._limits)

    def _throttle(self, limits: dict[str, int]) -> None:
        device = os.stat(self._loop).st_rdev
        for what in ("read", "write"):
            for unit, limit in limits.items():
                file = THROTTLE / f"blkio.throttle.{what}_{unit}_device"
                file.write_text(f"{os.major(device)}:{os.minor(device)} {limit}")

    def _remove(self) -> None:
        if self._loop:
            self._throttle(dict.fromkeys(self._limits, 0))
            subprocess.run(["umount", self.path], check=False)
            subprocess.run(["losetup", "--detach", self._loop], check=False)
        self._image.unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)


def _run(*command: object) -> str:
    done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    return done.stdout.strip()
