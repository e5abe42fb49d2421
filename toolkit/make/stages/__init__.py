"""Stages that ship with the toolkit: none yet."""
