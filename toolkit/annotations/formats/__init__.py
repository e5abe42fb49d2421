"""Forms of annotation files that `toolkit align` reads beside tables, one module each; see `..reader`."""
