"""The commands, a file each: its first line is its help, `Options` is what it takes, `run` does it."""
