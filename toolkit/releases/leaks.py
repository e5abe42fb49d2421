"""Credentials in texts that are to be published: what a card or a description may have copied from a configuration.

Only forms that nothing else has are looked for, so that what is found is worth an error. The tagger `secrets` looks in
documents, for many more.
"""

import os
import re
from collections.abc import Iterator

from toolkit.storage.addresses import has_secret

_FORMS = {
    "a key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a token of the Hugging Face Hub": r"\bhf_[A-Za-z0-9]{30,}\b",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})",
    "a token of GitLab": r"\bglpat-[\w-]{20,}",
    "a key of a language model's server": r"\bsk-[\w-]{20,}",
    "a token of Slack": r"\bxox[abeoprs]-[\w-]{10,}",
    "a key of Google": r"\bAIza[\w-]{35}\b",
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "a signed token (JWT)": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
}
_PATTERNS = {what: re.compile(form) for what, form in _FORMS.items()}
_ADDRESS = re.compile(r"""\b[a-z][a-z0-9+.-]*://[^\s"'<>)\]]+""", re.IGNORECASE)
_HIDDEN = "…"
"""Stands in an address of ours where it had a secret."""

_ENVIRONMENT = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY")
_LEAST = 8
"""Characters of a credential in the environment; fewer may be any word."""


def found_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each credential in a text, counted from 1, and what it is; never the credential."""
    here = [(name, os.environ.get(name, "")) for name in _ENVIRONMENT]
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, what) for what, pattern in _PATTERNS.items() if pattern.search(line))
        yield from ((number, f"the value of {name}") for name, value in here if len(value) >= _LEAST and value in line)
        addresses = (match[0] for match in _ADDRESS.finditer(line) if _HIDDEN not in match[0])
        yield from ((number, "an address with a secret") for address in addresses if has_secret(address))
