"""From external files to documents: the plan, the work on one input, and the record of each."""
