"""Evaluation: how well values of an attribute set predict labels, in all and within groups, beside baselines.

``predictions``  per shard: what the expressions of an evaluation give for each document, as columns; labels of files
``metrics``      what is measured of predictions and labels, with weights of documents; agreement, baselines
``judged``       what a judgement has
``judging``      all of it, in groups, with the bootstrap
"""
