"""Stored bytes of inputs, near or far, and their documents as rows."""
