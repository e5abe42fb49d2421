"""Benchmarks beside other programs: ``python -m tests.benchmarks``, by hand; docs/benchmarks.md says what they mean."""
