"""Passages: stretches of text that stand somewhere before, byte by byte, found wherever they begin.

A passage is `length` bytes of a text. A character goes if it lies in a passage that begins at an earlier place, too.

``stretches``   per shard: passages that follow one another and have one anchor are a stretch; equal passages are in
                stretches with the same anchor. A stretch is a key in the runs of `exact`: the hash of its anchor is the
                upper half, that of its text the lower one. Of equal stretches the first stays, as of equal lines.
``comparison``  whole: of stretches that share an anchor and are not equal the text is read again, and each of their
                passages compared: which of them were there before; per shard: both as spans
"""
