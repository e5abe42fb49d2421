"""Supervised fastText models: their files, checked; predictions in compiled code; what they say of lines."""
