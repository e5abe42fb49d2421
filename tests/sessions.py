"""The current session, as if it had just begun."""

from toolkit.session import current
from toolkit.storage.retrying import _Host


def forget_hosts() -> None:
    """Lets no host have answered."""
    for host in [key for key in current()._objects if isinstance(key, tuple) and key[0] is _Host]:
        current().drop(host)
    current().hosts.clear()


def forget_stores() -> None:
    """Lets stores be made anew: the environment has changed."""
    current().stores.clear()
