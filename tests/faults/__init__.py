"""Faults times commands: each pair is made to happen, and judged by four questions.

    python -m tests.faults                                       the whole matrix, by hand; prints a table
    python -m tests.faults --row throttle --column mix           a part of it

`rows` has the faults, `columns` the commands, `cells` plays one on the other, `judge` asks the questions. `places` and
`corpus` have what is worked on, `warm` runs a command in a process of its own, in which `disk` can break files.
A new row, or column, is a declaration of a few lines there.
"""
