"""Ways in which the toolkit could be wrong, for tests of the judge: each changes it in one process."""

import sys
from typing import Any

from toolkit.errors import ToolkitError
from toolkit.storage import json_files, record_log
from toolkit.storage.compression import compressor_for
from toolkit.storage.record_log import LogFile
from toolkit.storage.stores import local


def _replace(original: Any, other: Any) -> None:
    """Replace a function in each module of ours that has it, under whatever name."""
    for module in [module for name, module in sys.modules.items() if name.startswith("toolkit")]:
        for name, value in list(vars(module).items()):
            if value is original:
                setattr(module, name, other)


def swallow_errors() -> None:
    """Records that cannot be read count as not there."""
    strictly = json_files.load_strictly

    def load(path: str, type_: Any, *rest: Any, **named: Any) -> Any:
        try:
            return strictly(path, type_, *rest, **named)
        except ToolkitError:
            return None

    for original in (json_files.load, strictly):
        _replace(original, load)
    read = record_log._contents

    def contents(path: str) -> LogFile:
        try:
            return read(path)
        except ToolkitError:
            return LogFile(path, compressor_for(path)(record_log.header(0) + b"\n"))

    _replace(read, contents)


def write_in_place() -> None:
    """Files are written under their own names."""
    local.temporary_name = lambda path: path
    leave_temporaries()


def leave_temporaries() -> None:
    """A file that could not be written stays."""
    local.LocalWriting._discard = lambda self: None  # type: ignore[method-assign]


def publish_without_manifest() -> None:
    """Parts are published, and no manifest."""
    save = json_files.save
    without = staticmethod(lambda path, record: None if path.endswith("manifest.json") else save(path, record))
    _replace(save, without)


def say_nothing() -> None:
    """Errors have no words."""
    ToolkitError.__str__ = lambda self: "something went wrong"  # type: ignore[method-assign]


def end_well() -> None:
    """Whatever happens, the status is 0."""
    import toolkit.cli

    run = toolkit.cli.main

    def main(*arguments: Any, **named: Any) -> int:
        run(*arguments, **named)
        return 0

    setattr(toolkit.cli, "main", main)  # noqa: B010
