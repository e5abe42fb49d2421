"""What several commands do: the context that they work in, shares, places, what describes a dataset."""
