"""Stop words by language, from the package ``stopwordsiso``."""

import functools


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, in lower case; none where the package has no list (57 languages have one).

    Case is not folded: `daß` stays, and whoever folds the words of a text folds these, too.

    Source: stopwordsiso (stopwords-iso, MIT).

    Args:
        language: ISO 639-1 code, as identified languages have.
    """
    import stopwordsiso

    return (
        frozenset(map(str.lower, stopwordsiso.stopwords(language))) if stopwordsiso.has_lang(language) else frozenset()
    )
