"""The dataset card, README.md, as the Hugging Face hub shows it."""
