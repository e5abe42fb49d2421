"""Stages: what one is, how far each is, and the state of what was made."""
