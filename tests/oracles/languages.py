"""The language of pages, for peers that are given it with their input, as RedPajama and Dolma are by CCNet."""

import msgspec

from taggers.text_language import TextLanguage
from tests.oracles.pages import Page
from toolkit import Document


def with_language(page: Page) -> Page:
    """Return a page with what `text_language` says of it in its metadata: `language` and `language_score`."""
    guess = TextLanguage().tag(Document(page.text))
    more = {"language": guess.label, "language_score": guess.prob}
    return msgspec.structs.replace(page, metadata=page.metadata | more)
