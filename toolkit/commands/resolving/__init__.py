"""What the commands share that make sets of the whole dataset: duplicates, samples."""
