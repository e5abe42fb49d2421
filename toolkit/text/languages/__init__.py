"""What depends on the language: labels, and words as other programs split them."""
