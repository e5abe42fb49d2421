"""The options of fine-tuned encoders."""

import os
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from toolkit.config.settings import Description
from toolkit.errors import ConfigError
from toolkit.learn.train.trainer import Positive, Trainer
from toolkit.storage.models import digest_of_file
from toolkit.text.encoders.config import CONFIG, TOKENIZER, check_folder, read_config
from toolkit.text.encoders.tokens import Batches, BatchOption, Device, Tokens
from toolkit.text.encoders.torch_models import WEIGHTS, device_of

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class EncoderOptions(Trainer, kw_only=True):
    """Options of fine-tuned encoders."""

    PACKAGES: ClassVar[Sequence[str]] = ("numpy", "safetensors", "tokenizers", "torch", "transformers")
    NEUTRAL: ClassVar[frozenset[str]] = Trainer.NEUTRAL | {"base", "device", "threads"}

    base: Annotated[
        str, Description(description="the folder of an encoder: config.json, model.safetensors, tokenizer.json")
    ]
    max_tokens: Annotated[
        Count | None,
        Description(
            description="how many tokens of a text, or of a piece of it, the model sees; null: 512, or what it takes"
        ),
    ] = None
    freeze: Annotated[
        bool, Description(description="whether the encoder stays as it is, and its head alone learns")
    ] = False
    epochs: Annotated[Count, Description(description="the largest number of passes over the texts")] = 3
    batch: BatchOption = Batches(documents=32)
    lr: Annotated[Positive | None, Description(description="learning rate; null: 5e-5, or 3e-4 with `freeze`")] = None
    weight_decay: Annotated[
        Annotated[float, msgspec.Meta(ge=0)], Description(description="the weight decay of AdamW")
    ] = 0.01
    schedule: Annotated[Literal["cosine", "linear"], Description(description="how the learning rate falls to 0")] = (
        "cosine"
    )
    warmup: Annotated[Share, Description(description="the share of all steps in which it rises at first")] = 0.1
    dropout: Annotated[
        Share | None, Description(description="the dropout of layers and head; null: that of the encoder")
    ] = None
    patience: Annotated[
        Count, Description(description="training stops after this number of epochs without a better result on valid")
    ] = 5
    min_delta: Annotated[
        Annotated[float, msgspec.Meta(ge=0)],
        Description(description="how much better a result on valid must be to count"),
    ] = 0.001
    device: Device = "auto"
    threads: Annotated[Count, Description(description="how many threads of the processor compute")] = 1

    @property
    def file(self) -> str:
        """Return the name of the file with the weights."""
        return WEIGHTS

    @property
    def rate(self) -> float:
        """Return the learning rate."""
        return self.lr or (3e-4 if self.freeze else 5e-5)

    def check(self) -> None:
        super().check()
        try:
            check_folder(self.base, CONFIG, TOKENIZER, WEIGHTS)
            self.tokens()
        except ConfigError as error:
            raise type(error)(f"base: {error}") from None
        device_of(self.device)

    def facts(self) -> dict[str, Any]:
        """Return digests of the files of the encoder that are read."""
        return {"base": {name: digest_of_file(os.path.join(self.base, name)) for name in (CONFIG, TOKENIZER, WEIGHTS)}}

    def tokens(self) -> Tokens:
        """Return what cuts texts."""
        return Tokens(self.base, self.most, read_config(os.path.join(self.base, CONFIG)))

    @property
    def most(self) -> int:
        """Return the number of tokens that the model sees of a text."""
        return read_config(os.path.join(self.base, CONFIG)).tokens(self.max_tokens)
