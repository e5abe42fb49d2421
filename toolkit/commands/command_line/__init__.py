"""From words to options: what commands take, and the parser, help and page that are made of it."""
