"""Files on disk, in buckets, on the web, and in users' stores.

A path is local, or ``SCHEME://…``. `store_of` gives the `Store` of a path, which is a plugin: a module of
`toolkit.storage.stores` that is called like the scheme, an entry point of the group ``toolkit.stores``, or a class that
``storage: {stores: {SCHEME: …}}`` names. What differs between places is in their stores and nowhere else. Whatever the
store, a file that is written appears complete or not at all, and listings are sorted.
"""

from toolkit.errors import ConfigError
from toolkit.plugins import Kind
from toolkit.session import current
from toolkit.storage.store import Pieces, Stat, Store, Writing

__all__ = ["STORES", "Pieces", "Stat", "Store", "Writing", "scheme_of", "store_of"]

STORES: Kind[Store] = Kind(
    word="store",
    package="toolkit.storage.stores",
    group="toolkit.stores",
    base=Store,  # type: ignore[type-abstract]  # classes that extend it are made
    home="toolkit.storage",
)
"""The stores, by their schemes."""

LOCAL = "local"
"""The store of paths without a scheme."""


def scheme_of(path: str) -> str:
    """Return ``s3``, ``https`` and so on; an empty text for local paths."""
    scheme, result, _ = path.partition("://")
    return scheme if result else ""


def store_of(path: str) -> Store:
    """Return the store of a path; one object in a session.

    Raises:
        ConfigError: if there is none for it, or what it needs is not installed.
    """
    scheme, session = scheme_of(path), current()
    if scheme not in session.stores:
        store = session.stores.setdefault(scheme, _class_of(scheme)(session.options))
        session.has_remote_stores |= not store.is_local
    result: Store = session.stores[scheme]
    return result


def _class_of(scheme: str) -> type[Store]:
    if not scheme:
        from toolkit.storage.stores.local import Local  # `STORES` looks for what is installed, which takes a while

        return Local
    if reference := current().options.stores.get(scheme):
        return STORES.find(reference)
    names = [name for name in STORES.names() if name != LOCAL]
    if scheme not in names:
        schemes = " or ".join(f"{name}://" for name in names)
        raise ConfigError(
            f"{scheme}://: expected a local path, {schemes}; a store of your own is named in `storage.stores`"
        )
    return STORES.find(scheme)
