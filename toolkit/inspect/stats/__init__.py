"""Numbers about a corpus: how much there is of what, and how attributes are distributed.

file ──> documents ──keys──> groups ──┐ kept per file, with the digest of what was read
             └──> distributions ──────┴──> merged ──> tables, plots
"""
