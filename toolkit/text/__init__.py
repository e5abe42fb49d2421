"""Functions for authors of plugins: lines, words, n-grams and measures of many texts at once; URLs, lists, tables.

`toolkit.Batch` has the tables of lines and words; what is done with them, the models and the compiled code are here.
"""

# the imports below are made when they are needed

from typing import TYPE_CHECKING

from toolkit.public_names import import_by_use

if TYPE_CHECKING:
    from toolkit.data.documents import (
        explain_bad_row as explain_bad_row,
        joined_lines as joined_lines,
        split_lines as split_lines,
        value_at as value_at,
    )
    from toolkit.data.line_index import pairs_in as pairs_in, pickled_pairs as pickled_pairs
    from toolkit.data.tables.from_arrow import arrow_rows as arrow_rows
    from toolkit.data.tables.parquet import open_parquet as open_parquet
    from toolkit.data.tables.to_arrow import arrow_array as arrow_array, arrow_schema as arrow_schema
    from toolkit.data.urls import host_of as host_of, split_url as split_url, url_of as url_of
    from toolkit.lazy_numpy import np as np
    from toolkit.storage.models import (
        entries as entries,
        for_language as for_language,
        read_list as read_list,
        resolve as resolve,
    )
    from toolkit.text.batch import Column as Column
    from toolkit.text.counting import count_code_points as count_code_points, count_marked as count_marked
    from toolkit.text.encoders.classifier import (
        ClassifierAsked as ClassifierAsked,
        ModelFolder as ModelFolder,
        check_classifier as check_classifier,
        load_classifier as load_classifier,
    )
    from toolkit.text.encoders.encoder import (
        Encoder as Encoder,
        EncoderOption as EncoderOption,
        Halves as Halves,
        load_encoder as load_encoder,
        most_tokens as most_tokens,
        unit as unit,
    )
    from toolkit.text.encoders.heads import HeadOption as HeadOption, load_head as load_head
    from toolkit.text.encoders.tokens import Batches as Batches, BatchOption as BatchOption, Device as Device
    from toolkit.text.fasttext.model import (
        FastText as FastText,
        LinePredictions as LinePredictions,
        load_fasttext as load_fasttext,
        without_capitals as without_capitals,
    )
    from toolkit.text.kernels.compiling import compiled as compiled
    from toolkit.text.kernels.signatures import (
        Array as Array,
        Bytes as Bytes,
        Float32s as Float32s,
        Float64s as Float64s,
        Int32s as Int32s,
        Int64s as Int64s,
        UInt8s as UInt8s,
        UInt32s as UInt32s,
        UInt64s as UInt64s,
        inlined as inlined,
    )
    from toolkit.text.languages.labels import LabelForm as LabelForm, in_form as in_form
    from toolkit.text.languages.spacy_words import (
        TERMINALS as TERMINALS,
        SpacyKind as SpacyKind,
        characters_in as characters_in,
        spacy_kind as spacy_kind,
        spacy_languages as spacy_languages,
        spacy_sentence_ends as spacy_sentence_ends,
        spacy_sentences as spacy_sentences,
        spacy_words as spacy_words,
    )
    from toolkit.text.languages.tables import stop_word_lists as stop_word_lists, stop_words as stop_words
    from toolkit.text.languages.words import (
        check_word_language as check_word_language,
        datatrove_words as datatrove_words,
        has_no_blanks as has_no_blanks,
    )
    from toolkit.text.line_table import LineTable as LineTable, sums as sums
    from toolkit.text.linear.model import (
        Linear as Linear,
        Said as Said,
        Window as Window,
        WindowOption as WindowOption,
        load_linear as load_linear,
    )
    from toolkit.text.listed_phrases import occurrences as occurrences
    from toolkit.text.measures import LineMeasures as LineMeasures, WordMeasures as WordMeasures
    from toolkit.text.ngrams import Repeated as Repeated, Repetition as Repetition, Sequences as Sequences, Top as Top
    from toolkit.text.normal_forms import decomposed as decomposed, lower_decomposed as lower_decomposed
    from toolkit.text.portable_floats import natural_logs as natural_logs, shortest_float32 as shortest_float32
    from toolkit.text.tokens import (
        IDS as IDS,
        TRACE as TRACE,
        Origin as Origin,
        Tokenizer as Tokenizer,
        TraceFile as TraceFile,
        TraceWriter as TraceWriter,
    )
    from toolkit.text.unicode_table import (
        ALPHA as ALPHA,
        BREAKS as BREAKS,
        CLASSES as CLASSES,
        LOWER as LOWER,
        NUMBER as NUMBER,
        PICTURE as PICTURE,
        PUNCTUATION as PUNCTUATION,
        SPACE as SPACE,
        UPPER as UPPER,
        Characters as Characters,
        characters as characters,
        decoded as decoded,
        number_of as number_of,
        numbers_of_all as numbers_of_all,
        of_all as of_all,
    )
    from toolkit.text.words import (
        ALL_PUNCTUATION as ALL_PUNCTUATION,
        HAS_ALNUM as HAS_ALNUM,
        HAS_ALPHA as HAS_ALPHA,
        HAS_ASCII_LETTER as HAS_ASCII_LETTER,
        IS_LOWER as IS_LOWER,
        IS_TITLE as IS_TITLE,
        IS_UPPER as IS_UPPER,
        Splitter as Splitter,
        Words as Words,
        hashes_of as hashes_of,
        is_among as is_among,
        places_among as places_among,
    )


import_by_use(__name__)
