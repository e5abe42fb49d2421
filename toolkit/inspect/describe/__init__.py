"""What a dataset or an output is, for those who take it over: facts gathered from records and data, and Croissant."""
