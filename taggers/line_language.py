"""The language of each line.

Source: ungoliant (OSCAR 21.09 to 23.01), ``identifiers/model.rs``: fastText ``predict(line, k=1, threshold=0.8)`` with
lid.176; goclassy: the same, lines of at least 100 code points only. Model: Joulin et al. 2016, arXiv:1607.01759; labels
are fastText's, lower-case (``als`` is Alemannic, not Albanian).
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec

from toolkit import Added, Batch, Document, Example, Prediction, Tagger
from toolkit.text import FastText, LabelForm, LinePredictions, in_form, load_fasttext

ENGLISH = "The library opens at nine and closes late in the evening."
GREEK = "Η βιβλιοθήκη ανοίγει στις εννέα και κλείνει αργά το βράδυ."


class LineLanguage(Tagger):
    r"""The most probable language of each line and its probability; null for a line that is not identified.

    A line is not identified if its probability is below `min_prob`, if it has no word, or if it is shorter than
    `min_chars` (the model does not see such lines). Probabilities are float32 and may exceed 1 by 1e-4. NUL characters
    are left out.

    Attributes:
        model: a fastText model: path, URL or known name
        min_prob: a line with a lower probability is null
        min_chars: a line with fewer code points is null
        labels: labels of the model, BCP 47 tags, or labels of OSCAR; a label of no language becomes null
    """

    VERSION = "3"

    EXAMPLES = (
        Example("", []),
        Example(ENGLISH + "\n\n...", [Prediction("en", 0.9366177), None, None]),
        Example(GREEK, [Prediction("el", 0.9917329)]),
        Example(ENGLISH + "\n" + GREEK, [None, Prediction("el", 0.9917329)], options={"min_chars": 58}),
    )

    model: FastText = "lid.176.ftz"
    min_prob: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8
    min_chars: Annotated[int, msgspec.Meta(ge=0)] = 0
    labels: Annotated[LabelForm, Added] = "model"

    def tag(self, document: Document) -> list[Prediction | None]:
        return self.tag_batch([document])[0]

    def tag_batch(self, documents: Sequence[Document]) -> LinePredictions:
        lines = Batch.of(documents).lines
        predictions = load_fasttext(self.model).predict_lines(lines, threshold=self.min_prob, min_chars=self.min_chars)
        return predictions if self.labels == "model" else predictions.renamed(partial(in_form, form=self.labels))
