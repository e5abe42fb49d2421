"""Steps that several commands take, and the context that they take them in."""
