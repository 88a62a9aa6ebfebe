"""The parameters of features of tokens, of which the command line makes its options; nothing is loaded for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from maxmargin.parameters import has_parameters, parameter
from maxmargin.sklearn_contract import Estimator


@has_parameters
class WindowOptions(Estimator):
    """The parameters of `WindowFeatures`.

    The command line says `help` in place of the documentation here, takes no value below `least`, and calls the option
    `flag`, if it is not to have the name of the parameter.
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
        default=3,
        least=0,
        help="Length of the longest prefix and suffix.",
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
    gazetteers: Mapping[str, Iterable[str]] | None = parameter(
        "dict",
        "Lists of names, each a string of one or more words: tokens that are part of one have a feature for its list, "
        "and whether they begin the name or go on with it. Case does not matter; the longest name counts. Lists made "
        "of the entities in y are cross-fit by `fit_transform`, which pipelines and `Tagger` call: see there.",
        default=None,
        flag="--gazetteer",
        help="A list of names, one per line, and its title; may be repeated.",
    )
