"""Models trained on labels of attribute sets or of documents' metadata.

An entry of the section ``train:`` is a model, its `kind` a module or package of `toolkit.learn.train.kinds` with a
class of the same name in CamelCase that extends `toolkit.learn.train.trainer.Trainer`; nothing else names it. A trainer
is a kind of `toolkit.whole_corpus`, of which the first step alone is used: per shard, its signer writes the label and
the split of each document, and what the kind needs of its text. Then

 2. whole, `examples` reads these back, checks that there are enough, and makes numbers of labels;
 3. `Trainer.fit` trains on the split ``train``, chooses by ``valid`` where something is to be chosen, and says what the
    model says of ``valid`` and ``test``, which `metrics` compares with the labels;
 4. `folder` writes model, card and checksums together. Then the files of the first step are deleted.

The model is a function of documents, labels and settings: the same bytes for any number of processes.
"""
