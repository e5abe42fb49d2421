"""A dataset, or an output, as pages on a local port; nothing of it is changed, but labels are written.

    documents  ┐                 ┌── listing: rows in order ──┐
    attributes ├── corpus ───────┤                            ├── answers ── server ── a browser
    row index  ┘  (rows by       └── queries: filter, sort  ──┘      └── labels
                   their place)

`corpus` gives rows by their places; `members` reads them from the middle of compressed files, by the row index, so that
objects of a store are not read whole; queries look for rows by an expression, and order them. `answers` is what the
browser may ask, as plain data; `server` lets only who has the token ask it. The page itself is in `toolkit.pages`.
"""
