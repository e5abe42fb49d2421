"""The replay: two checkouts run the same configurations, commands and refusals, and what they give is compared.

    python -m tests.replay --base COMMIT [--data FOLDER] [--cache FOLDER] [--expected FILE] [--only WORD] …

`cases` has what is run: configurations and pages are those of the base, so that the other checkout has to do what the
base did. `server` runs command lines of one checkout, `runner` gives it work in a folder or a bucket, `recording` keeps
what came of it, `comparing` finds and prints differences. `planted` makes ten changes that the replay has to report.
"""
