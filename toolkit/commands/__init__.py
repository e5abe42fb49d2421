"""The commands, a file each, and what they share in files that begin with `_`.

Of a command's file the first line is its help, `Options` is what it takes, `run` does it.
"""
