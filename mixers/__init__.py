"""Built-in output formats, one file each, found by name. They import from `toolkit` only."""
