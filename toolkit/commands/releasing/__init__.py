"""Commands that publish what was made, and fetch what others have published."""
