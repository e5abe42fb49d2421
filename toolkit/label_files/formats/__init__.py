"""Forms of annotation files, one module each, which reads and writes it; see `..reader`."""
