"""The section ``executor:`` of a configuration."""

from typing import Annotated, Any

import msgspec

from toolkit.config.settings import ConfigStruct, Description, Source, convert, divide
from toolkit.config.sizes import Size
from toolkit.errors import did_you_mean

Count = Annotated[int, msgspec.Meta(ge=1)]


class InProcessSettings(ConfigStruct):
    """All in the calling process, for a debugger."""


class LocalSettings(ConfigStruct):
    """Worker processes on this machine."""

    recycle: Annotated[
        Count | None, Description(description="tasks after which a worker process is replaced, against leaks")
    ] = None
    memory: Annotated[
        Size | None, Description(description="a worker that holds more, with its helpers, is ended; its task fails")
    ] = None


class RaySettings(ConfigStruct):
    """A Ray cluster."""

    address: Annotated[
        str, Description(description="`host:port` of the head; `auto`: $RAY_ADDRESS, or the cluster of this machine")
    ] = "auto"
    cpus: Annotated[Count, Description(description="that a task asks for")] = 1
    memory: Annotated[Size | None, Description(description="that a task asks for")] = None
    retries: Annotated[
        Annotated[int, msgspec.Meta(ge=0)],
        Description(description="of a task whose process or node died"),
    ] = 3
    in_flight: Annotated[
        Count | None,
        Description(description="tasks that the cluster has at a time; default: 2 × its CPUs, divided by `cpus`"),
    ] = None
    recycle: Annotated[
        Count | None, Description(description="tasks after which a worker process is replaced, against leaks")
    ] = None


Settings = InProcessSettings | LocalSettings | RaySettings

KINDS: dict[str, type[Settings]] = {"local": LocalSettings, "in_process": InProcessSettings, "ray": RaySettings}


def read(executor: dict[str, Any], source: Source) -> Settings:
    """The settings of an executor; without ``type`` it is ``local``.

    Args:
        executor: what the section says.
        source: the whole configuration, for messages.

    Raises:
        ConfigError: with the line of what is unknown or wrong.
    """
    part = source.at("executor") if "executor" in (source.value or {}) else Source(executor)
    _, options = divide(part, ["type"])
    kind = executor.get("type", "local")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS) or f"; known: {', '.join(KINDS)}"
        raise part.error(("type",), f"unknown executor {kind!r}{hint}")
    return convert(options, KINDS[kind], f"executor {kind}")
