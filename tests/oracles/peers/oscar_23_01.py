"""The reference of OSCAR 23.01, by ungoliant 2.0, whose labels are others: `oscar_23_01.py PAGES VERDICTS`."""

from ungoliant import main  # type: ignore[import-not-found]  # beside this file, which is run by itself

main("quality_warnings", {"als": "gsw", "eml": "x-eml"})
