"""Stages of the toolkit itself: none yet."""
