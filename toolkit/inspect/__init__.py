"""What is there: checks, statistics, and descriptions of datasets and outputs."""
