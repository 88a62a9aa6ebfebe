"""The parameters of features of tokens, of which the command line makes its options; nothing is loaded for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from maxmargin.parameters import has_parameters, parameter
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.text.token_features.property_checks import (
    check_classes,
    check_length,
    check_patterns,
    check_prefixes,
    check_vectors,
)


@has_parameters
class WindowOptions(SentenceTransformer):
    """The parameters of `WindowFeatures`.

    The command line says `help` in place of the documentation here, takes no value below `least`, calls the option
    `flag`, if it is not to have the name of the parameter, and reads what is not a number in a `form` of its own.
    """

    window: int = parameter(
        "int",
        "The number of tokens on either side whose lower-cased words, shapes and tags are features.",
        default=2,
        least=0,
        help="Words on either side that are features.",
    )
    affixes: int = parameter(
        "int",
        "The length of the longest prefix and suffix.",
        default=5,
        least=0,
        help="Length of the longest prefix and suffix.",
    )
    cased_affixes: bool = parameter(
        "bool",
        "Whether prefixes and suffixes are spelled as their words are; by default in lower case, as words and shapes "
        "tell what is capitalized.",
        default=False,
        flag="--cased-affixes",
        help="Prefixes and suffixes as words are spelled, not in lower case.",
    )
    shapes: bool = parameter(
        "bool",
        "Shapes of words, in which letters and digits stand for their class, repeated ones once: McCoy-33 is AaAa-0.",
        default=True,
        help="Shapes of words: that of McCoy-33 is AaAa-0.",
    )
    word_ngrams: int = parameter(
        "int",
        "The length of the longest sequence of words that a token is part of.",
        default=2,
        least=1,
        help="Length of the longest sequence of words.",
    )
    tag_ngrams: int = parameter(
        "int",
        "The length of the longest sequence of tags within the window.",
        default=3,
        least=1,
        help="Length of the longest sequence of tags.",
    )
    tag_words: bool = parameter(
        "bool",
        "Words together with tags: that of a token with its own tag and with those beside it, and the words beside it "
        "with its tag.",
        default=True,
        help="Words together with tags beside them.",
    )
    gazetteers: Mapping[str, Iterable[str]] | None = parameter(
        "dict",
        "Lists of names, each a string of one or more words: tokens that are part of one have a feature for its list, "
        "and whether they begin the name or go on with it. Case does not matter; the longest name counts. Lists made "
        "of the entities in y are cross-fit by `fit_transform`, which pipelines and `Tagger` call: see there.",
        default=None,
        flag="--gazetteer",
        form="lists",
        help="A list of names, one per line, and its title, or a folder of lists; or mimesis:en, mimesis:all, of an "
        "installed package; may be repeated.",
    )
    loose_names: bool = parameter(
        "bool",
        "Whether names in gazetteers count where only letters and digits are the same, without their accents and what "
        "is in between: U.S. is US, Sao Paulo is São Paulo or #SaoPaulo.",
        default=False,
        flag="--loose-names",
        help="Find names of lists whatever their accents, punctuation and blanks.",
    )
    near_affixes: int = parameter(
        "int",
        "The length of the longest prefix and suffix of the words beside a token, within the window.",
        default=0,
        least=0,
        help="Length of the longest prefix and suffix of neighbours.",
    )
    char_ngrams: int = parameter(
        "int",
        "The length of the longest sequence of characters of a word, from two on, its ends marked; 0 has none.",
        default=0,
        least=0,
        help="Length of the longest sequence of characters.",
    )
    patterns: Mapping[str, str] | None = parameter(
        "dict",
        "Regular expressions by title: words within the window that match one as a whole have a feature.",
        default=None,
        check=check_patterns,
        flag="--pattern",
        form="patterns",
        help="A regular expression for whole words, and its title; may be repeated.",
    )
    classes: Mapping[str, Mapping[str, str]] | None = parameter(
        "dict",
        "Classes of words by title, each a dict of words, as `read_classes` and `learn_classes` return: those of the "
        "words within the window are features. A word that has none has that of its lower case.",
        default=None,
        check=check_classes,
        flag="--classes",
        form="classes",
        help="A file with a word and its class in each line, or Brown's paths, and its title; or TITLE=spacy:en, "
        "TITLE=spacy-case:en, of an installed package; may be repeated.",
    )
    class_prefixes: tuple[int, ...] = parameter(
        "tuple of ints",
        "Lengths of prefixes of classes that are features, too, where all are paths in a tree: strings of 0 and 1.",
        default=(4, 6, 10),
        check=check_prefixes,
        form="lengths",
        help="Lengths of prefixes of classes that are paths of 0 and 1.",
    )
    elsewhere: bool = parameter(
        "bool",
        "Whether the same word is capitalized, or not, elsewhere in its document: within a sentence, where it counts. "
        "What the documents are, sentences from `read_columns` and `Corpus` tell; without, each is one of its own.",
        default=False,
        help="How the same word is spelled elsewhere in its document.",
    )
    vectors: Any = parameter(
        "WordVectors or VectorFile",
        "Vectors of words, whose numbers are dense columns beside the names of features: `read_vectors` reads them "
        "from a file. A word that has none has that of its lower case, or zeros.",
        default=None,
        check=check_vectors,
        form="vectors",
        help="A file of word vectors: of GloVe, word2vec, fastText (.vec), or .npy with its words in .txt.",
    )
    vector_window: int = parameter(
        "int",
        "The number of tokens on either side whose vectors are columns, too.",
        default=0,
        least=0,
        help="Words on either side whose vectors are features, too.",
    )
    vector_length: float | None = parameter(
        "float",
        "The root mean square length that the vectors of all tokens to train on are scaled to, by one factor: the "
        "larger, the less are they regularized, and the longer takes the training. None leaves them as they are.",
        default=1.0,
        check=check_length,
        form="length",
        help="Length to scale vectors to; none leaves them as they are.",
    )
