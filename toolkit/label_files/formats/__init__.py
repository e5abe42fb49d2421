"""Forms of annotation files, one module each for reading and writing; see `..reader`."""
