"""A record log: records of many shards in few files. docs/records.md tells why, and what a kill costs.

``FOLDER/records.jsonl.gz``        the newest entry of each key, sorted
``FOLDER/segments/<id>.jsonl.gz``  what one worker wrote for a group of shards, once and whole

An entry is a record, or the tombstone of one, by kind and key. Each has a number, and the highest number holds, in
whatever order files are read and however often: so segments can be merged, read twice, or written by several at once.
"""

from toolkit.storage.record_log.entries import Entry, Place
from toolkit.storage.record_log.log import SUFFIX, UNLIKE_DATA, Group, RecordLog

__all__ = ["SUFFIX", "UNLIKE_DATA", "Entry", "Group", "Place", "RecordLog"]
