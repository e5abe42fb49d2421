"""Annotating: a language model behind an endpoint says what documents are worth, or what they are.

An entry of the section ``annotate:`` is an attribute set, made in two steps:

 1. `asking`, in the process of the command: documents are read, requests made of them, and those without an answer
    are sent, many at a time. An answer is durable in `answers` as soon as it is there, known by a digest of what was
    asked: whatever ends a run, nothing is asked twice but what was under way.
 2. `annotator`, a tagger: the attributes of a shard from the answers that are there, without a request. The set is
    written, recorded and judged as that of any tagger is (`toolkit.tag`).
"""
