"""Labels from people and language models; models that learn from them; how good these are."""
