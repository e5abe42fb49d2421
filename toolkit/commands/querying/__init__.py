"""What queries can name: views of a configuration, a dataset, an output."""
