"""Stop words by language, from the package ``stopwordsiso``."""

import functools


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, in lower case; none where the package has no list (57 languages have one).

    Source: stopwordsiso (stopwords-iso, MIT).

    Args:
        language: ISO 639-1 code, as identified languages have.
    """
    import stopwordsiso

    return (
        frozenset(map(str.casefold, stopwordsiso.stopwords(language)))
        if stopwordsiso.has_lang(language)
        else frozenset()
    )
