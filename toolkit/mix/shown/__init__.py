"""What a mix does to documents, shown: counts, dry runs, explanations, comparisons."""
