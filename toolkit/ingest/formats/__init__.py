"""Input formats, one file each, found by name; each extends `toolkit.ingest.reader.Reader`."""
