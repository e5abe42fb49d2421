"""Pages in a real browser: nothing of a document runs, people without a mouse or eyes can use them, and they work."""
