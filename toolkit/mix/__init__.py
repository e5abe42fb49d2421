"""Mixing: documents and attributes, joined row by row under rules, become an output format.

stage 1, a task per shard    documents + attributes --join--> rules --encode--> members, by label   (`stage`)
plan, in one place           which members make which part, and the parts' names                    (`plan`)
stage 2, a task per part     members copied as they are --> part, sha256                             (`assemble`)
publication, in one place    parts, checksums, manifest appear; old parts go                         (`publish`)
"""
