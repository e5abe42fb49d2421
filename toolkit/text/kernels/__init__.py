"""Compiled code, and how it is compiled and kept."""
