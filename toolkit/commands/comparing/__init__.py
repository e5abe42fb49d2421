"""What `compare` and `evaluate` do: the sets that they read, what is asked of documents, what is shown."""
