"""What can be said of models in one of a few words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Inside(StrEnum):
    """Schemes that models can have inside."""

    auto = "auto"
    none = "none"
    iobes = "iobes"
    bilou = "bilou"


class Effort(StrEnum):
    """How much is done to find good options."""

    quick = "quick"
    thorough = "thorough"


class Preference(StrEnum):
    """What is to be higher."""

    recall = "recall"
    precision = "precision"


class LearnedOfWords(StrEnum):
    """What is learned of words from text that is not tagged."""

    classes = "classes"
    vectors = "vectors"
    both = "both"


class ClustersBy(StrEnum):
    """How words are put into classes."""

    exchange = "exchange"
    vectors = "vectors"


class ModelType(StrEnum):
    """Types of models."""

    crf = "crf"
    svm = "svm"
    segments = "segments"


Tune = Annotated[
    Effort | None,
    typer.Option(
        help="Find features, C and more by held-out sentences first, within --time-limit seconds, and show what each "
        "is worth.",
        show_default="options as given; 600 s, thorough: 7200",
    ),
]
Parse = Annotated[
    bool,
    typer.Option("--parse", help="Train a parser on CoNLL-U: the head of each word, and the label of the arc to it."),
]
Crossing = Annotated[
    bool, typer.Option("--crossing", help="Let arcs of parsers cross.", show_default="they are lifted until none do")
]
