"""The fast path for authors of taggers: lines, words, n-grams, counts and measures of many texts at once."""
