"""Files on the web by ``https://``."""

from toolkit.storage.stores.http import Http


class Https(Http):
    """Files on the web, as with ``http://``."""
