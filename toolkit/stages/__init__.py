"""Stages and their runner: declarations, context, tasks, disk quota, and the state of sets."""
