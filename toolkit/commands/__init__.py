"""The commands, a file each in a folder by their purpose, and what they share.

Of a command's file the first line is its help, `Options` is what it takes, `run` does it.
"""
