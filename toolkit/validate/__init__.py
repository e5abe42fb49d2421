"""Checks of what is on disk: documents, attribute sets, outputs. Findings: ``path:line: expected …, got …``."""
