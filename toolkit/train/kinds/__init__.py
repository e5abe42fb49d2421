"""Kinds of models, a module each; the contract is `toolkit.train.trainer.Trainer`."""
