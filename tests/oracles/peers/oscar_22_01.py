"""The reference of OSCAR 22.01, by ungoliant 1.1: `oscar_22_01.py PAGES VERDICTS`."""

from ungoliant import main  # type: ignore[import-not-found]  # beside this file, which is run by itself

main("annotation", {})
