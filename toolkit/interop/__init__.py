"""Other programs whose configurations and data are read here."""
