"""Very long runs over generated text: is what they hold, and how fast they are, the same at the end as at the begin?"""
