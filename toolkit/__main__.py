"""``python -m toolkit``: the command line."""

from toolkit.cli import entry

if __name__ == "__main__":
    entry()
