"""Addresses with secrets: what is shown and stored of them, and what they are.

User info (``user:password@``) and queries (``?X-Amz-Signature=…``) give their readers the rights of the user.
`redact_url` removes them where an address comes in, from a configuration or the command line. From then on the toolkit
has the redacted address; only a store that sends a request calls `reveal_url`. So no file, message or error has the
secret.

    https://me:secret@host/x.gz?token=abc  ->  https://…@host/x.gz?…9f86d081

The digits tell queries apart that lead to different files. They are 32 bits of a hash: of a secret that can be guessed
there are a great many with the same ones.
"""

import hashlib
import os
import re
import urllib.parse

from toolkit.errors import ConfigError
from toolkit.session import current

HUB = "https://huggingface.co"

_USER = "…@"
_QUERY = "?…"

_ADDRESS = re.compile(r"""(?i)([a-z][a-z0-9+.-]{0,30})://([^\s/?#"'<>\\]*)([^\s?#"'<>]*)([^\s"'<>]*)""")
"""Scheme, who and where, path, and what follows it."""

_PAIR = re.compile(r"\?[\w.~%-]+=")
"""How a query begins that is not on the web: a question mark alone belongs to a glob, or to a name."""

_SIGNED = re.compile(
    r"(?i)[?&](?:[\w.-]*(?:signature|token|secret|password|credential|api-?key|access-?key)[\w.-]*|sig|key)="
)
"""Parameters that give somebody a right."""

_NAMED = re.compile(
    r"(?i)((?:signature|token|secret|password|credential|api-?key|access-?key)[\w.-]{0,64}\s{0,8}[=:]\s{0,8})[^\s,;&]+"
)
"""The same, named anywhere in a text."""

CREDENTIALS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "HF_TOKEN",
)
"""Environment variables with secrets of stores."""

_PARTS = re.compile(r"(?i)(?:^|[?;&])(?:AccountKey|SharedAccessSignature|sig)=([^;&]+)")
"""The secrets inside a connection string and a signature of Azure."""

_LONG = 8
"""Characters from which a user, a password or a value is taken out of messages by itself; less may be any word."""


def hub_endpoint() -> str:
    """Return the address of the Hugging Face Hub; HF_ENDPOINT has that of another."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB


def redact_url(text: str, *, carry: bool = True) -> str:
    """Return an address without its secrets, and remember it for `reveal_url`. Return any other text as it is.

    Args:
        text: an address, or something else.
        carry: True if processes that work for this one must know it; thousands of inputs are sent to them one by one.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or (redacted := _redact_match(match)) == text:
        return text
    session = current()
    (session.addresses if carry else session.inputs)[redacted] = text
    return redacted


def redact_text(message: str) -> str:
    """Return an external message without secrets.

    None are in the addresses that it quotes. Nor are there parts of addresses that the session knows, values of what
    is called a signature, token or the like, and the credentials of clouds that are in the environment: a server may
    repeat all that it was asked with.
    """
    message = _ADDRESS.sub(_redact_match, message)
    for secret in sorted(_secrets(), key=len, reverse=True):
        message = message.replace(secret, "…")
    return _NAMED.sub(r"\1…", message)


def _secrets() -> set[str]:
    """Return the secrets of this session: parts of known addresses, and credentials in the environment."""
    results = {os.environ.get(name, "") for name in CREDENTIALS}
    results |= {
        form for value in results for part in _PARTS.findall(value) for form in (part, urllib.parse.unquote(part))
    }
    for address in _known_urls().values():
        if match := _ADDRESS.fullmatch(address):
            user, query = match[2].rpartition("@")[0], match[4].removeprefix("?")
            parts = [*user.split(":"), *(pair.partition("=")[2] for pair in query.split("&"))]
            results |= {user if ":" in user else "", query if "=" in query else ""}
            results |= {part for part in parts if len(part) >= _LONG}
    return results - {""}


def has_secret(text: str) -> bool:
    """Return True for an address with user info or a signature."""
    match = _ADDRESS.fullmatch(text)
    return bool(match and ("@" in match[2] or _SIGNED.search(match[4])))


def reveal_url(address: str) -> str:
    """Return the full address of a request.

    Raises:
        ConfigError: if it was copied from where it had lost its secret.
    """
    if _USER not in address and _QUERY not in address:
        return address
    addresses = _known_urls()
    if address in addresses:
        return addresses[address]
    # a path below one that is known: of a crawl below its `base_url:`
    below = [item for item in addresses if _QUERY not in item and address.startswith(item.rstrip("/") + "/")]
    if below:
        base = max(below, key=len)
        return addresses[base].rstrip("/") + address[len(base.rstrip("/")) :]
    raise ConfigError(
        f"{address}: expected a whole address, got one without its user or query, which the "
        f"toolkit hides in messages; write the whole address"
    )


def remember_url(redacted: str, address: str) -> None:
    """Remember the full address of a redacted one."""
    if redacted != address:
        current().inputs[redacted] = address


def _redact_match(match: re.Match[str]) -> str:
    scheme, place, path, rest = match.groups()
    _, at, host = place.rpartition("@")
    if rest.startswith(_QUERY):
        return match[0]
    if re.search(r":(?!\d*$)", host.rpartition("]")[2]):  # no port: a password with a sign in it that ends the place
        return f"{scheme}://{_QUERY}{_digits(match[0])}"
    if scheme.lower() not in ("http", "https") and not _PAIR.match(rest):
        path, rest = path + rest, ""
    query = rest.partition("#")[0].removeprefix("?") if rest.startswith("?") else ""
    return f"{scheme}://{_USER if at else ''}{host}{path}" + (f"{_QUERY}{_digits(query)}" if query else "")


def _digits(query: str) -> str:
    return hashlib.sha256(query.encode(errors="surrogatepass")).hexdigest()[:8]


def _known_urls() -> dict[str, str]:
    return current().addresses | current().inputs
