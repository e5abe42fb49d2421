"""Contract suites for plugins, for a plugin's own tests to call. They raise AssertionError and say what is wrong."""

from toolkit.testing.stores import MemoryStore, check_readable_store, check_store

__all__ = ["MemoryStore", "check_readable_store", "check_store"]
