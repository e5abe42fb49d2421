"""The section ``executor:``."""

import pytest

from toolkit.config.settings import parse
from toolkit.errors import ConfigError
from toolkit.runs.executors.settings import InProcessSettings, LocalSettings, RaySettings, Settings, read


def settings(text: str) -> Settings:
    source = parse(f"processes: 2\nexecutor:\n{text}" if text else "processes: 2", "c.yaml")
    return read(source.value.get("executor", {}), source)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", LocalSettings()),
        ("  recycle: 3", LocalSettings(recycle=3)),
        ("  {type: local, memory: 4 GB}", LocalSettings(memory=4_000_000_000)),  # type: ignore[arg-type]
        ("  type: in_process", InProcessSettings()),
        ("  type: ray", RaySettings(address="auto", cpus=1, memory=None, retries=3, in_flight=None)),
        (
            "  {type: ray, address: 'head:6379', cpus: 2, memory: 1 GiB, retries: 0, in_flight: 9, recycle: 5}",
            RaySettings(address="head:6379", cpus=2, memory=1 << 30, retries=0, in_flight=9, recycle=5),  # type: ignore[arg-type]
        ),
    ],
)
def test_what_is_left_out_has_a_default(text: str, expected: Settings) -> None:
    assert settings(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  type: rai", "c.yaml:3: executor.type: unknown executor 'rai'; did you mean 'ray'?"),
        ("  type: slurm", "c.yaml:3: executor.type: unknown executor 'slurm'; known: local, in_process, ray"),
        ("  type: 3", "c.yaml:3: executor.type: unknown executor 3; known: local, in_process, ray"),
        ("  type: [ray]", "c.yaml:3: executor.type: unknown executor ['ray']; did you mean 'ray'?"),
        (
            "  type: local\n  recyle: 3",
            "c.yaml:4: executor: unknown option 'recyle' of executor local; did you mean 'recycle'?",
        ),
        ("  recycle: 0", "c.yaml:3: executor.recycle: expected int >= 1 (0)"),
        ("  memory: 4 XB", "c.yaml:3: executor.memory: expected a size such as 1000000, 500 MB or 64 MiB, got '4 XB'"),
        (
            "  {type: in_process, memory: 4 GB}",
            "c.yaml:3: executor: unknown option 'memory' of executor in_process; there are none",
        ),
        ("  type: ray\n  retries: -1", "c.yaml:4: executor.retries: expected int >= 0 (-1)"),
        ("  type: ray\n  cpus: many", "c.yaml:4: executor.cpus: expected int, got str ('many')"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(text)
    assert str(raised.value) == message
