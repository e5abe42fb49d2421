"""The section ``executor:``."""

from pathlib import Path

import pytest

from toolkit.config.settings import ConfigStruct, parse
from toolkit.config.sizes import Size
from toolkit.errors import ConfigError
from toolkit.execution.executors import Report, Task, unheard
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.executors.local import Local, LocalSettings
from toolkit.execution.executors.ray import Ray, RaySettings
from toolkit.execution.workers import Chosen, Workers, read


def settings(text: str) -> Chosen:
    source = parse(f"processes: 2\nexecutor:\n{text}" if text else "processes: 2", "c.yaml")
    return read(source.value.get("executor", {}), source, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Chosen(Local, LocalSettings())),
        ("  recycle: 3", Chosen(Local, LocalSettings(recycle=3))),
        ("  {type: local, memory: 4 GB}", Chosen(Local, LocalSettings(memory=Size(4_000_000_000)))),
        ("  type: in_process", Chosen(InProcess, ConfigStruct())),
        ("  type: ray", Chosen(Ray, RaySettings(address="auto", cpus=1, memory=None, retries=3, in_flight=None))),
        (
            "  {type: ray, address: 'head:6379', cpus: 2, memory: 1 GiB, retries: 0, in_flight: 9, recycle: 5}",
            Chosen(
                Ray,
                RaySettings(address="head:6379", cpus=2, memory=Size(1 << 30), retries=0, in_flight=9, recycle=5),
            ),
        ),
    ],
)
def test_what_is_left_out_has_a_default(text: str, expected: Chosen) -> None:
    assert settings(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  type: rai", "c.yaml:3: executor.type: no executor is called 'rai'; did you mean 'ray'?"),
        ("  type: slurm", "c.yaml:3: executor.type: no executor is called 'slurm'; there are: in_process, local, ray"),
        ("  type: 3", "c.yaml:3: executor.type: expected one of in_process, local, ray, got 3"),
        ("  type: [ray]", "c.yaml:3: executor.type: expected one of in_process, local, ray, got ['ray']"),
        (
            "  type: local\n  recyle: 3",
            "c.yaml:4: executor: unknown option 'recyle' of executor local; did you mean 'recycle'?",
        ),
        ("  recycle: 0", "c.yaml:3: executor.recycle: expected a whole number of at least 1, got 0"),
        ("  memory: 4 XB", "c.yaml:3: executor.memory: expected a size such as 1000000, 500 MB or 64 MiB, got '4 XB'"),
        (
            "  {type: in_process, memory: 4 GB}",
            "c.yaml:3: executor: unknown option 'memory' of executor in_process; there are none",
        ),
        ("  type: ray\n  retries: -1", "c.yaml:4: executor.retries: expected a whole number of at least 0, got -1"),
        ("  type: ray\n  cpus: many", "c.yaml:4: executor.cpus: expected a whole number, got 'many'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(text)
    assert str(raised.value) == message


OWN = """
from toolkit.config.settings import ConfigStruct
from toolkit.execution.executors import Executor, attempt


class TwiceSettings(ConfigStruct):
    times: int = 2


class Twice(Executor):
    Settings = TwiceSettings

    def run(self, function, tasks, *, at_once=None):
        for task in tasks:
            self.begun(task.name)
            yield [attempt(function, task, self.report) for _ in range(self.settings.times)][-1]
"""


def test_an_executor_of_ones_own_is_a_class_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    chosen = settings(f"  type: {file}:Twice\n  times: 3")
    calls: list[str] = []

    def function(payload: str, report: Report) -> str:
        calls.append(payload)
        return payload.upper()

    workers = Workers(chosen, 4, lambda documents, size: None, unheard)
    assert [result.value for result in workers.executor(2).run(function, [Task(x, x) for x in "ab"])] == ["A", "B"]
    assert calls == ["a"] * 3 + ["b"] * 3
    with pytest.raises(ConfigError, match=rf"c.yaml:4: executor: unknown option 'tims' of executor {file}:Twice"):
        settings(f"  type: {file}:Twice\n  tims: 3")
    file.write_text("class Twice: pass")
    with pytest.raises(
        ConfigError, match=r"c.yaml:3: .* expected a class that extends toolkit.execution.executors.Executor"
    ):
        settings(f"  type: {file}:Twice")
