"""What `toolkit annotate` does with ``--from`` and ``--to``: it writes what is there as files of others."""
