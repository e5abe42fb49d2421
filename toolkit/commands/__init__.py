"""The commands, a file each; files that begin with `_` are shared.

Of a command's file the first line is its help, `Options` is what it takes, `run` does it.
"""
