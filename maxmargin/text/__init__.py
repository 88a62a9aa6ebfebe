"""What text needs: features of tokens, files of tagged sentences, and schemes of tags."""

from maxmargin.text.columns import read_columns, write_columns
from maxmargin.text.conllu import Sentence, Word, read_conllu, write_conllu
from maxmargin.text.json_lines import read_json_lines, write_json_lines
from maxmargin.text.schemes import Entity, check_tags, convert_tags, find_entities, find_scheme
from maxmargin.text.windows import WindowFeatures

__all__ = [
    "Entity",
    "Sentence",
    "WindowFeatures",
    "Word",
    "check_tags",
    "convert_tags",
    "find_entities",
    "find_scheme",
    "read_columns",
    "read_conllu",
    "read_json_lines",
    "write_columns",
    "write_conllu",
    "write_json_lines",
]
