"""Models for turning texts into vectors: batches, files and computation."""
