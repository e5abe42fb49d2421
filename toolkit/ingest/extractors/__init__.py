"""Built-in extractors of text from HTML, one a file; they need no registration."""
