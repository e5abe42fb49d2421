"""Numbers about joined rows, exact and independent of their order.

A block of documents is counted into a partial; partials of shards are kept, and add up to those of a corpus:

- `histogram`: numbers in decimal buckets, of some documents (`Histogram`) or by label (`Spread`)
- `distributions`: the values of attributes, each counted where they are few
- `groups`: sums by key, of any number of keys
- `samples`: the documents with the least ranks
- `tables`, `drawing`: how all of these are shown
"""
