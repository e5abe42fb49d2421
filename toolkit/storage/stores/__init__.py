"""The stores: a module or a folder for each scheme.

Each extends `toolkit.storage.store.Store`.
"""
