"""What publishing and fetching return."""

from toolkit.in_python.results.result import Result


class Published(Result, frozen=True, kw_only=True):
    """What `publish` did.

    Attributes:
        to: the folder, or the dataset of the Hugging Face Hub.
        files: paths of what is published, below it.
        became: what became of each: there, fetched (it was not there), replaced; none of a dry run.
        deleted: what only the last publication had.
        findings: of the checks; with them nothing is published.
        page: where people see a dataset of the Hub, and whether it is private.
    """

    to: str
    files: list[str]
    became: dict[str, str] = {}
    deleted: list[str] = []
    findings: list[str] = []
    page: str = ""
    private: bool = False


class Fetched(Result, frozen=True, kw_only=True):
    """What `fetch` did.

    Attributes:
        folder: that was fetched into.
        labels: by label, its parts.
        files: by path, what became of each: there, fetched, replaced; none of a dry run.
        bytes: of all files, as stored.
    """

    folder: str
    labels: dict[str, list[str]]
    files: dict[str, str] = {}
    bytes: int = 0
