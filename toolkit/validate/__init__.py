"""Checks of files on disk: documents, attribute sets, outputs. Findings: ``path:line: expected …, got …``."""
