"""What `mix`, `run`, `status` and `stats` have in common: the works of a mix, its previews, its end, its tables."""
