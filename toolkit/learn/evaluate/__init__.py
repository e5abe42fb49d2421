"""Evaluation: how well values of an attribute set predict labels, in all and within groups, beside baselines.

``columns``    values of documents as arrays: numbers, or codes of a table
``rows``       per shard: what the expressions of an evaluation give for each document
``labels``     labels that lie in files, found by id or by text
``metrics``    what is measured of predictions and labels, with weights of documents
``agreement``  the coefficients of two annotators, from such weights
``rounds``     the bootstrap: weights, intervals, paired differences
``baselines``  predictions that know nothing, or the source alone
``judged``     what a judgement has
``judging``    all of it, in groups
"""
