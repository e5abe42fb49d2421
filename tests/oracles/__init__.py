"""Other programs that results are held against, by hand: they are not installed with the tests."""
