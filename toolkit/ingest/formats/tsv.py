"""Tables as text, with tabs between fields."""

from toolkit.ingest.formats.csv import Csv, Delimiter


class Tsv(Csv):
    """As `csv`, with a tab between fields. Many such files have no quotes around fields: then say `quote: null`."""

    delimiter: Delimiter = "\t"
