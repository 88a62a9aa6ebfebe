"""The public names of texts and where they are defined: a line each, as in that of `maxmargin`."""

from maxmargin.text.dictionaries import tag_names as tag_names
from maxmargin.text.mending import Mended as Mended
from maxmargin.text.mending import mend_tags as mend_tags
from maxmargin.text.schemes import Entity as Entity
from maxmargin.text.schemes import TagError as TagError
from maxmargin.text.schemes import check_tags as check_tags
from maxmargin.text.schemes import convert_tags as convert_tags
from maxmargin.text.schemes import find_entities as find_entities
from maxmargin.text.schemes import find_scheme as find_scheme
from maxmargin.text.sentence_files.columns import read_columns as read_columns
from maxmargin.text.sentence_files.columns import write_columns as write_columns
from maxmargin.text.sentence_files.conllu import Sentence as Sentence
from maxmargin.text.sentence_files.conllu import Word as Word
from maxmargin.text.sentence_files.conllu import read_conllu as read_conllu
from maxmargin.text.sentence_files.conllu import write_conllu as write_conllu
from maxmargin.text.sentence_files.documents import Document as Document
from maxmargin.text.sentence_files.documents import Layout as Layout
from maxmargin.text.sentence_files.documents import find_format as find_format
from maxmargin.text.sentence_files.documents import read_document as read_document
from maxmargin.text.sentence_files.documents import stream_documents as stream_documents
from maxmargin.text.sentence_files.json_lines import read_json_lines as read_json_lines
from maxmargin.text.sentence_files.json_lines import write_json_lines as write_json_lines
from maxmargin.text.token_features.named_features import FeatureColumns as FeatureColumns
from maxmargin.text.token_features.named_features import NamedFeatures as NamedFeatures
from maxmargin.text.token_features.windows import WindowFeatures as WindowFeatures
