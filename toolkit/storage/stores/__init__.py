"""The stores, a module or a folder each, called as the scheme of their paths is.

Each extends `toolkit.storage.store.Store`.
"""
