"""Lines of code by folder, beside the budgets in CONTRIBUTING.md: ``python -m tests.sizes [--base COMMIT]``.

A line counts if it has code: blank lines, comments and docstrings do not. ``--base`` adds the difference to a commit,
by default to the last tag, if there is one. Exceeding a budget is shown, and is not an error.
"""

import argparse
import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ("toolkit", "taggers", "mixers")
_BUDGET = re.compile(r"^\| `([\w/.*]+)` \| ([\d,]+) \|$", re.MULTILINE)
_NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> int:
    """Count the lines of a module that have code."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {line for token in tokens if token.type not in _NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    return len(code - docstrings)


def folder(path: str) -> str:
    """Return the row of the budget that a file belongs to."""
    parts = path.split("/")
    if parts[0] != "toolkit":
        return parts[0]
    return f"toolkit/{parts[1]}" if len(parts) > 2 else "toolkit/*.py"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def sizes(commit: str | None = None) -> Counter[str]:
    """Count the lines of code by folder, of the working tree or of a commit."""
    counts: Counter[str] = Counter()
    listed = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files")
    for path in listed.splitlines():
        if path.endswith(".py") and path.split("/")[0] in (*PRODUCT, "tests") and (commit or (ROOT / path).exists()):
            source = git("show", f"{commit}:{path}") if commit else (ROOT / path).read_text("utf-8")
            counts[folder(path)] += code_lines(source)
    return counts


def budgets() -> Counter[str]:
    """Return the lines that CONTRIBUTING.md gives each folder."""
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return Counter({name: int(lines.replace(",", "")) for name, lines in _BUDGET.findall(table)})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sizes", description=__doc__)
    parser.add_argument("--base", help="a commit to compare with (the last tag)")
    tags = git("tag", "--sort=-creatordate").split()
    base = parser.parse_args().base or (tags[0] if tags else None)
    now, budget = sizes(), budgets()
    before = sizes(base) if base else Counter[str]()
    total = {
        "product": [sum(counts[name] for name in counts if name != "tests") for counts in (now, budget, before)],
        **{name: [now[name], budget[name], before[name]] for name in sorted({*now, *budget, *before})},
    }
    since = f" {'since ' + base[:12]:>20}" if base else ""
    print(f"{'lines of code':24} {'now':>8} {'budget':>8} {'over':>8}{since}")
    for name, (lines, most, earlier) in total.items():
        over = f"{lines - most:+,}" if lines > most else ""
        print(f"{name:24} {lines:8,} {most:8,} {over:>8}" + (f" {lines - earlier:+20,}" if base else ""))


if __name__ == "__main__":
    main()
