"""Functions for authors of plugins: lines, words, n-grams and measures of many texts at once; URLs, lists, tables.

`toolkit.Batch` has the tables of lines and words; what is done with them, the models and the compiled code are here.
"""

# the imports below are made when they are needed

from typing import TYPE_CHECKING

from toolkit.public_names import import_by_use

if TYPE_CHECKING:
    from toolkit.data.documents import explain_bad_row as explain_bad_row
    from toolkit.data.documents import joined_lines as joined_lines
    from toolkit.data.documents import split_lines as split_lines
    from toolkit.data.documents import value_at as value_at
    from toolkit.data.line_index import pairs_in as pairs_in
    from toolkit.data.line_index import pickled_pairs as pickled_pairs
    from toolkit.data.tables.from_arrow import arrow_rows as arrow_rows
    from toolkit.data.tables.parquet import open_parquet as open_parquet
    from toolkit.data.tables.to_arrow import arrow_array as arrow_array
    from toolkit.data.tables.to_arrow import arrow_schema as arrow_schema
    from toolkit.data.urls import host_of as host_of
    from toolkit.data.urls import split_url as split_url
    from toolkit.data.urls import url_of as url_of
    from toolkit.storage.models import entries as entries
    from toolkit.storage.models import for_language as for_language
    from toolkit.storage.models import read_list as read_list
    from toolkit.storage.models import resolve as resolve
    from toolkit.text.batch import Column as Column
    from toolkit.text.counting import count_code_points as count_code_points
    from toolkit.text.counting import count_marked as count_marked
    from toolkit.text.encoders.classifier import ClassifierAsked as ClassifierAsked
    from toolkit.text.encoders.classifier import ModelFolder as ModelFolder
    from toolkit.text.encoders.classifier import check_classifier as check_classifier
    from toolkit.text.encoders.classifier import load_classifier as load_classifier
    from toolkit.text.encoders.encoder import Encoder as Encoder
    from toolkit.text.encoders.encoder import EncoderOption as EncoderOption
    from toolkit.text.encoders.encoder import Halves as Halves
    from toolkit.text.encoders.encoder import load_encoder as load_encoder
    from toolkit.text.encoders.encoder import most_tokens as most_tokens
    from toolkit.text.encoders.encoder import unit as unit
    from toolkit.text.encoders.heads import HeadOption as HeadOption
    from toolkit.text.encoders.heads import load_head as load_head
    from toolkit.text.encoders.tokens import Batches as Batches
    from toolkit.text.encoders.tokens import BatchOption as BatchOption
    from toolkit.text.encoders.tokens import Device as Device
    from toolkit.text.fasttext.model import FastText as FastText
    from toolkit.text.fasttext.model import LinePredictions as LinePredictions
    from toolkit.text.fasttext.model import load_fasttext as load_fasttext
    from toolkit.text.fasttext.model import without_capitals as without_capitals
    from toolkit.text.kernels.compiling import compiled as compiled
    from toolkit.text.kernels.signatures import Array as Array
    from toolkit.text.kernels.signatures import Bytes as Bytes
    from toolkit.text.kernels.signatures import Float32s as Float32s
    from toolkit.text.kernels.signatures import Float64s as Float64s
    from toolkit.text.kernels.signatures import Int32s as Int32s
    from toolkit.text.kernels.signatures import Int64s as Int64s
    from toolkit.text.kernels.signatures import UInt8s as UInt8s
    from toolkit.text.kernels.signatures import UInt32s as UInt32s
    from toolkit.text.kernels.signatures import UInt64s as UInt64s
    from toolkit.text.kernels.signatures import inlined as inlined
    from toolkit.text.languages.labels import LabelForm as LabelForm
    from toolkit.text.languages.labels import in_form as in_form
    from toolkit.text.languages.spacy_words import TERMINALS as TERMINALS
    from toolkit.text.languages.spacy_words import SpacyKind as SpacyKind
    from toolkit.text.languages.spacy_words import characters_in as characters_in
    from toolkit.text.languages.spacy_words import spacy_kind as spacy_kind
    from toolkit.text.languages.spacy_words import spacy_languages as spacy_languages
    from toolkit.text.languages.spacy_words import spacy_sentence_ends as spacy_sentence_ends
    from toolkit.text.languages.spacy_words import spacy_sentences as spacy_sentences
    from toolkit.text.languages.spacy_words import spacy_words as spacy_words
    from toolkit.text.languages.tables import stop_word_lists as stop_word_lists
    from toolkit.text.languages.tables import stop_words as stop_words
    from toolkit.text.languages.words import check_word_language as check_word_language
    from toolkit.text.languages.words import datatrove_words as datatrove_words
    from toolkit.text.languages.words import has_no_blanks as has_no_blanks
    from toolkit.text.line_table import LineTable as LineTable
    from toolkit.text.line_table import sums as sums
    from toolkit.text.linear.model import Linear as Linear
    from toolkit.text.linear.model import Said as Said
    from toolkit.text.linear.model import load_linear as load_linear
    from toolkit.text.linear.ngrams import Window as Window
    from toolkit.text.linear.ngrams import WindowOption as WindowOption
    from toolkit.text.listed_phrases import occurrences as occurrences
    from toolkit.text.measures import LineMeasures as LineMeasures
    from toolkit.text.measures import WordMeasures as WordMeasures
    from toolkit.text.ngrams import Repeated as Repeated
    from toolkit.text.ngrams import Repetition as Repetition
    from toolkit.text.ngrams import Sequences as Sequences
    from toolkit.text.ngrams import Top as Top
    from toolkit.text.normal_forms import decomposed as decomposed
    from toolkit.text.normal_forms import lower_decomposed as lower_decomposed
    from toolkit.text.portable_floats import natural_logs as natural_logs
    from toolkit.text.portable_floats import shortest_float32 as shortest_float32
    from toolkit.text.tokens import IDS as IDS
    from toolkit.text.tokens import TRACE as TRACE
    from toolkit.text.tokens import Origin as Origin
    from toolkit.text.tokens import Tokenizer as Tokenizer
    from toolkit.text.tokens import TraceFile as TraceFile
    from toolkit.text.tokens import TraceWriter as TraceWriter
    from toolkit.text.unicode_table import ALPHA as ALPHA
    from toolkit.text.unicode_table import BREAKS as BREAKS
    from toolkit.text.unicode_table import CLASSES as CLASSES
    from toolkit.text.unicode_table import LOWER as LOWER
    from toolkit.text.unicode_table import NUMBER as NUMBER
    from toolkit.text.unicode_table import PICTURE as PICTURE
    from toolkit.text.unicode_table import PUNCTUATION as PUNCTUATION
    from toolkit.text.unicode_table import SPACE as SPACE
    from toolkit.text.unicode_table import UPPER as UPPER
    from toolkit.text.unicode_table import Characters as Characters
    from toolkit.text.unicode_table import characters as characters
    from toolkit.text.unicode_table import decoded as decoded
    from toolkit.text.unicode_table import number_of as number_of
    from toolkit.text.unicode_table import numbers_of_all as numbers_of_all
    from toolkit.text.unicode_table import of_all as of_all
    from toolkit.text.words import ALL_PUNCTUATION as ALL_PUNCTUATION
    from toolkit.text.words import HAS_ALNUM as HAS_ALNUM
    from toolkit.text.words import HAS_ALPHA as HAS_ALPHA
    from toolkit.text.words import HAS_ASCII_LETTER as HAS_ASCII_LETTER
    from toolkit.text.words import IS_LOWER as IS_LOWER
    from toolkit.text.words import IS_TITLE as IS_TITLE
    from toolkit.text.words import IS_UPPER as IS_UPPER
    from toolkit.text.words import Splitter as Splitter
    from toolkit.text.words import Words as Words
    from toolkit.text.words import hashes_of as hashes_of
    from toolkit.text.words import is_among as is_among
    from toolkit.text.words import places_among as places_among


import_by_use(__name__)
