"""The one definition of a line: ingest, taggers, rules, writers and validation have it from here."""


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text: split at ``\n``, one trailing ``\r`` of each stripped, no last empty line.

    What Rust's ``str::lines`` yields, hence what OSCAR's tools counted; never ``str.splitlines``, which also splits at
    form feeds, U+2028 and others.

    >>> split_lines("a\r\nb\n\nc\n")
    ['a', 'b', '', 'c']
    """
    if not text:
        return []
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if "\r" in text:
        lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def joined_lines(text: str) -> str:
    r"""Return the lines of a text joined by ``\n``, without a line end after the last one.

    >>> joined_lines("a\r\nb\n\nc\n")
    'a\nb\n\nc'
    """
    return "\n".join(split_lines(text)) if "\r" in text else text.removesuffix("\n")
