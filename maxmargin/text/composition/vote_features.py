"""Votes of documents beside any features: what the second of two taggers is told, whatever its transformer."""

from __future__ import annotations

from typing import Any, Self

from maxmargin.parameters import has_parameters, parameter
from maxmargin.persist.registry import register
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.text.composition.source_rows import SourceRows, as_rows
from maxmargin.text.document_tags import split_votes
from maxmargin.text.schemes import LabelSequences
from maxmargin.text.templates.template_features import TemplateFeatures
from maxmargin.text.token_features.transformers import Transformer, fit_transform
from maxmargin.text.token_features.windows import WindowFeatures

REACH = range(-2, 3)  # the tokens whose votes are features
VOTES = TemplateFeatures(
    template="\n".join(
        [
            *(f"Uvote[{k:+}]:%x[{k},1]" for k in REACH),
            *(f"Uvotes[{k:+}]:%x[{k},1]/%x[{k + 1},1]" for k in REACH[:-1]),
            "Uvote|word:%x[0,1]/%X[0,0]",
        ]
    )
)


@register
@has_parameters
class VotedFeatures(SentenceTransformer):
    """Features of a transformer that knows nothing of votes, the last column of tokens, with those of votes beside."""

    features: Any = parameter("transformer", "What makes features of tokens without that column.")

    def fit(self, X: Any, y: LabelSequences | None = None) -> Self:
        """Fit the transformer."""
        self.features.fit(split_votes(X)[0], y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> SourceRows:
        """The features of the tokens to train on."""
        sentences, votes = split_votes(X)
        return SourceRows([as_rows(fit_transform(self.features, sentences, y)), VOTES.transform(votes)])

    def transform(self, X: Any) -> SourceRows:
        """The features of the tokens."""
        sentences, votes = split_votes(X)
        return SourceRows([as_rows(self.features.transform(sentences)), VOTES.transform(votes)])


def add_vote_features(features: Transformer) -> Transformer:
    """A transformer that has features of votes; those of windows have features of every column of tokens."""
    return features if isinstance(features, WindowFeatures) else VotedFeatures(features=features)
