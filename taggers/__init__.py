"""Built-in taggers, one file each, found by name. They import from `toolkit` only."""
