"""Effects of a mix on documents: counted while it runs, and shown beforehand, explained, and compared."""
