"""Web archives: records, HTTP messages, encodings, and the text of pages."""
