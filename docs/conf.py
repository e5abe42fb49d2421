"""How Sphinx makes a site of these pages: ``python -m sphinx -W -b html docs FOLDER`` (extra ``docs``).

The pages are plain Markdown and need no site. The site adds a navigation, a search, and the docstrings of all Python
names. It takes nothing from the web, neither when it is built nor when it is read.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from toolkit import distribution, reference  # noqa: E402

project = distribution.NAME
version = release = distribution.VERSION
html_title = f"{project} {version}"
html_theme = "furo"
html_show_copyright = html_show_sphinx = html_copy_source = False

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4  # the anchors of headings are those of code hosts
suppress_warnings = ["misc.highlighting_failure"]  # a `…` in a block of JSON stands for what is left out
autodoc_member_order = "bysource"
napoleon_use_ivar = True  # attributes in docstrings are no second description of members
default_role = "literal"  # docstrings have Markdown's `names`

ITEM = re.compile(r"^- \[[^]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)
TAGGER = re.compile(r"^### (\w+)$", re.MULTILINE)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
FROM_THE_WEB = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>|@import""")


def navigation(index: str) -> dict[str, list[str]]:
    """Return the pages under each heading of index.md, in order."""
    _, *parts = HEADING.split(index)
    return {heading: ITEM.findall(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def _read(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the list of all pages, their docstrings to Python names, and their pages to taggers."""
    if page == "index":
        for heading, pages in navigation(source[0]).items():
            source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```\n"])
    elif page == "reference/python-names":
        for module in HEADING.findall(source[0]):
            directive = f".. automodule:: {module}\n   :members:\n   :imported-members:\n"
            source[0] += f"\n## Docstrings of {module}\n\n```{{eval-rst}}\n{directive}```\n"
    elif page == "reference/taggers":
        pages = [f"taggers/{name}" for name in TAGGER.findall(source[0])]
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", "", *pages, "```\n"])


def _write(_: Sphinx) -> None:
    """Write the reference pages from the code."""
    reference.write()


def _look(app: Sphinx, error: Exception | None) -> None:
    """Refuse a site that takes scripts, styles or pictures from the web."""
    for path in sorted(Path(app.outdir).rglob("*.html")) if error is None else ():
        if found := FROM_THE_WEB.search(path.read_text(encoding="utf-8")):
            raise ExtensionError(f"{path}: expected nothing that is taken from the web, got {found[0]}")


def setup(app: Sphinx) -> None:
    """Connect what this file adds."""
    app.connect("builder-inited", _write)
    app.connect("source-read", _read)
    app.connect("build-finished", _look)
