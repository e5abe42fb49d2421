"""Budgets: how much a mix takes, of the whole or by group.

`settings` is the section ``budget:``. `drawing` writes, for each shard, the hash and the amount of each copy that the
rules leave. `bounds` finds in these, for each group, the greatest hash that is taken; the rule
`toolkit.rules.kinds.repeat` then takes what is up to it.
"""
