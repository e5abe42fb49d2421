"""Runs the stages of a command: declarations, context, tasks, disk quota, and the state of sets."""
