"""A page from its template, styles and scripts, under a strict policy."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolkit.session import cached

FOLDER = Path(__file__).parent
CHARTS = "vendor/uPlot-1.6.32.min"

_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\x7f\u2028\u2029\ufeff"}
_ESCAPED |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}


@cached(16)
def text(name: str) -> str:
    """Return a style or a script by its name below this folder: ``static/base.css``."""
    return (FOLDER / name).read_text(encoding="utf-8")


def policy(styles: Sequence[str], scripts: Sequence[str], **more: str) -> str:
    """Return the Content-Security-Policy for these texts alone.

    Args:
        styles: the texts of the ``<style>`` elements.
        scripts: those of the ``<script>`` elements.
        more: other directives, ``connect_src="'self'"``.
    """
    directives = {
        "default-src": "'none'",
        "script-src": _hashes(scripts),
        "style-src": _hashes(styles),
        "base-uri": "'none'",
        "form-action": "'none'",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def embedded(json: bytes) -> str:
    """Return JSON as it can stand in a ``<script>`` element: the same value, of which HTML understands nothing.

    ``<``, ``>`` and ``&`` are escaped, so that no text ends the element, and the separators and directions of Unicode,
    so that whoever reads the source sees it in its order. All of them stand in strings alone, where JSON has escapes.
    """
    return json.decode("utf-8").translate(_ESCAPED)


def page(
    template: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    more: Mapping[str, str] = MappingProxyType({}),
    **values: Any,
) -> str:
    """Return a whole page: a template of ``templates/``, whose values are escaped, with its parts inline.

    Args:
        template: its file, which says where styles, scripts and the policy stand by extending ``page.html``.
        styles: names of styles, as `text` takes them, in their order.
        scripts: names of scripts.
        more: directives of the policy, as `policy` takes them.
        values: Values for the template. Text is escaped; JSON for a ``<script>`` comes through `embedded`, as
            ``markupsafe.Markup``.
    """
    style_texts, script_texts = [text(name) for name in styles], [text(name) for name in scripts]
    allowed = policy(style_texts, script_texts, **more)
    result = _environment().get_template(template)
    output: str = result.render(styles=style_texts, scripts=script_texts, policy=allowed, **values)
    return output


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(FOLDER / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
