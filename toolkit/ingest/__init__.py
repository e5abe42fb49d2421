"""From the files of others to documents: the plan, the work on one input, and the record of each."""
