"""Linear models over hashed n-grams: what they see and count of a text, their files, checked, their predictions."""
