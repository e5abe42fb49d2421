"""The power fails: what was not synced is gone, or there in part; the next run goes on from that."""
