"""A configuration to begin with, made from what is at a path."""
