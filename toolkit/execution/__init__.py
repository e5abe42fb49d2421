"""How work is run: child processes, blocks of rows, executors, leases, progress."""
