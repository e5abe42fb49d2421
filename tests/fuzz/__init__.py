"""Files that nobody has vetted, by the thousand: they are refused, or read right, and never crash what reads them."""
