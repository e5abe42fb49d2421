"""Kinds of models, a module each; the contract is `toolkit.learn.train.trainer.Trainer`."""
