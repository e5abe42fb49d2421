"""The commands, a file each: its options, and `run`, a function from a context to an outcome."""
