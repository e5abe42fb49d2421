"""Taggers: what one is, the plan of a `tag:` section, and the pass over a shard that writes attributes."""
