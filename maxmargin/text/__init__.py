"""What text needs: features of tokens, files of tagged sentences, and schemes of tags."""

from maxmargin.text.mending import Mended, mend_tags
from maxmargin.text.schemes import Entity, TagError, check_tags, convert_tags, find_entities, find_scheme
from maxmargin.text.sentence_files.columns import read_columns, write_columns
from maxmargin.text.sentence_files.conllu import Sentence, Word, read_conllu, write_conllu
from maxmargin.text.sentence_files.documents import Document, Layout, find_format, read_document, stream_documents
from maxmargin.text.sentence_files.json_lines import read_json_lines, write_json_lines
from maxmargin.text.token_features.named_features import FeatureColumns, NamedFeatures
from maxmargin.text.token_features.windows import WindowFeatures

__all__ = [
    "Document",
    "Entity",
    "FeatureColumns",
    "Layout",
    "Mended",
    "NamedFeatures",
    "Sentence",
    "TagError",
    "WindowFeatures",
    "Word",
    "check_tags",
    "convert_tags",
    "find_entities",
    "find_format",
    "find_scheme",
    "mend_tags",
    "read_columns",
    "read_conllu",
    "read_document",
    "read_json_lines",
    "stream_documents",
    "write_columns",
    "write_conllu",
    "write_json_lines",
]
