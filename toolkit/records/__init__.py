"""Provides the records of finished work: sets, inputs, failures, takedowns."""
