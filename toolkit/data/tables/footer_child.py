"""The process to read footers of Parquet files first (see `parquet`). It ends with its standard input.

It is run by itself and imports nothing of ours, so that it begins fast and takes little memory.
"""

import contextlib
import io
import resource
import signal
import sys

SECONDS = 20
"""Of processor time for a footer, and one more for each MiB."""
WALL_FACTOR = 50
MEMORY = 4 << 30
"""Bytes of addresses of the process."""


def main() -> None:
    """Answer each footer with one byte, after pyarrow has read it.

    A footer comes after 8 bytes of its length, little-endian.

    That pyarrow refuses a footer is no matter: whoever asks will be refused, too.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.modules["numpy"] = None  # type: ignore[assignment]  # half of its start; pyarrow reads footers without it
    import pyarrow as pa
    import pyarrow.parquet as pq

    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if most < 0 else min(MEMORY, most), most))
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while length := questions.read(8):
        footer = questions.read(int.from_bytes(length, "little"))
        seconds = SECONDS + len(footer) / (1 << 20)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
        with contextlib.suppress(pa.ArrowException, OSError, ValueError, OverflowError):
            _walk(pq.ParquetFile(io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(b".")
        answers.flush()


def _walk(file: object) -> None:
    """Read all used parts of the footer."""
    about = file.metadata  # type: ignore[attr-defined]  # pyarrow has no types
    with contextlib.suppress(ValueError):
        str(file.schema_arrow)  # type: ignore[attr-defined]
    for group in range(about.num_row_groups):
        row_group = about.row_group(group)
        for i in range(row_group.num_columns):
            column = row_group.column(i)
            statistics = column.statistics
            if statistics is not None and statistics.has_null_count:
                _ = statistics.null_count
            _ = (column.path_in_schema, column.total_compressed_size)


if __name__ == "__main__":
    main()
