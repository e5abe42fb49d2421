"""The command line: options of commands, and the parser that is made from them."""
