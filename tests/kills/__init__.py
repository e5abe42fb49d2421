"""Signals at random moments, to every command of the fault matrix: what is there then, and after a rerun, is judged."""
