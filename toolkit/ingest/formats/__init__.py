"""Input formats, one file each, found by name."""
