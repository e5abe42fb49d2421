"""A real Slurm cluster: munged, slurmctld and two slurmd, in a temporary folder and namespaces of their own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.waiting import PATIENCE, wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "squeue", "unshare", "nsenter", "ip")
ADDRESS = "10.99.0.1"
NODES = ("n1", "n2")
CPUS = 32
GRACE = 10 * int(PATIENCE)
"""Seconds until a job in the partition ``patient`` has to leave: more than any test waits."""

CONF = """
ClusterName=test
SlurmctldHost=localhost({address})
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
# A job that is queued again waits until its credential has ended: two minutes by default. Within this time it has to
# reach its node.
AuthInfo=socket={folder}/munge/socket,cred_expire=20
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU,CR_LLN
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
ReturnToService=2
# No machine is too busy for these. What is told to leave tidies up and says so: Slurm does not kill it before.
KillWait={patience}
UnkillableStepTimeout={patience}
BatchStartTimeout={patience}
SlurmdTimeout={patience}
MessageTimeout=100
TCPTimeout=100
# Ended jobs stay known.
MinJobAge=86400
{nodes}
PartitionName=spare Nodes=ALL Default=YES PriorityTier=1
PartitionName=patient Nodes=ALL PriorityTier=1 GraceTime={grace}
PartitionName=urgent Nodes=ALL PriorityTier=2
"""


def missing() -> str:
    """Why there can be no cluster here; empty if there can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if absent:
        return f"Slurm is not installed (apt-get install slurm-wlm munge): no {', '.join(absent)}"
    ran = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return f"namespaces are not permitted here: {ran.stderr.strip()}" if ran.returncode else ""


NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
"""In which nobody else listens on these ports, and all processes end with the first."""


def until(holds: Callable[[], bool], what: str) -> None:
    """Waits; an error that says what it waited for."""
    assert wait_until(holds), f"waited {PATIENCE:.0f} s for {what}"


class Cluster:
    """Two virtual nodes on this machine, which pretend to have more than it, without accounting.

    Partition ``spare`` is preempted by ``urgent`` at once, ``patient`` with a grace time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        self._first: subprocess.Popen[bytes] | None = None
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        for name in ("munge", "state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)
        nodes = "\n".join(
            f"NodeName={name} NodeAddr={ADDRESS} Port={16818 + i} CPUs={CPUS} RealMemory=65536 State=UNKNOWN"
            for i, name in enumerate(NODES)
        )
        (self.folder / "slurm.conf").write_text(
            CONF.format(grace=GRACE, patience=int(PATIENCE), address=ADDRESS, folder=self.folder, nodes=nodes)
        )
        with (self.folder / "log").open("ab") as log:
            self._first = subprocess.Popen(
                [*NAMESPACES, "sh", "-c", f"ip link set lo up && ip addr add {ADDRESS}/32 dev lo && exec sleep inf"],
                stdout=log, stderr=log, env=self.env, start_new_session=True,
            )  # fmt: skip
        try:
            self._start()
        except BaseException as error:
            error.add_note(self.log)
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._first
        with suppress(ProcessLookupError):
            os.killpg(self._first.pid, signal.SIGKILL)
        for process in (self._first, *self._daemons):
            process.wait()

    def _start(self) -> None:
        until(lambda: ADDRESS in self._try("ip", "addr").stdout, "the namespace")
        munge = self.folder / "munge"
        files = [f"--{name}-file={munge / name}" for name in ("key", "pid", "log", "seed")]
        self._daemon("munged", "--foreground", "--force", f"--socket={munge / 'socket'}", *files)
        until((munge / "socket").exists, "munged")
        self._daemon("slurmctld", "-D")
        for name in NODES:
            self._daemon("slurmd", "-D", "-N", name)
        until(lambda: self._try("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "2", "nodes")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-5000:]

    def _inside(self, *command: str) -> list[str]:
        assert self._first
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children")
        until(lambda: bool(children.read_text()), "a process in the namespace")
        return ["nsenter", "-t", children.read_text().split()[0], "--net", "--pid", "--mount", *command]

    def _daemon(self, *command: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self._daemons.append(
                subprocess.Popen(self._inside(*command), stdout=log, stderr=log, env=self.env, cwd=self.folder)
            )

    def _try(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._inside(*command), capture_output=True, text=True, env=self.env, check=False, timeout=PATIENCE
        )

    def run(self, *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        """What a command says on the cluster."""
        within = ("sh", "-c", 'cd "$0" && exec "$@"', str(cwd or "/"))  # nsenter leaves the folder
        ran = subprocess.run(
            self._inside(*within, *command),
            capture_output=True, text=True, env={**self.env, **(env or {})}, check=False, timeout=PATIENCE,
        )  # fmt: skip
        assert ran.returncode == 0, f"{command}: {ran.stderr}"
        return ran.stdout.strip()

    def job(self, job: str) -> dict[str, str]:
        """What the controller knows of a job or a task of an array, by name."""
        line = self.run("scontrol", "show", "job", "--oneliner", job).splitlines()[0]
        return dict(word.partition("=")[::2] for word in line.split(" ") if "=" in word)

    def state(self, job: str) -> str:
        return self.job(job)["JobState"]
