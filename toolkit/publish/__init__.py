"""Outputs on their way to others, and back: publication with checks before it, and the fetching of languages.

output ──checks──> a folder, on disk or in a bucket    (`publishing`, `hub`)
release ──what there is of a label──> checked parts    (`release`, `fetching`)
"""
