"""Language-dependent tables: labels, and words as other programs split them."""
