"""What can be said of models in one of a few words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Inside = StrEnum("Inside", ["auto", "none", "iobes", "bilou"])  # schemes that models can have inside
Effort = StrEnum("Effort", ["quick", "thorough"])  # how much is done to find good options
Preference = StrEnum("Preference", ["recall", "precision"])  # what is to be higher
LearnedOfWords = StrEnum("LearnedOfWords", ["classes", "vectors", "both"])  # from text that is not tagged
ClustersBy = StrEnum("ClustersBy", ["exchange", "vectors"])  # how words are put into classes
ModelType = StrEnum("ModelType", ["crf", "svm", "segments"])

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
