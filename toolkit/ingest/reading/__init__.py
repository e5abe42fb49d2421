"""From the stored bytes of inputs, near or far, to their documents as rows."""
