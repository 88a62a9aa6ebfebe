"""What taggers do once they are fitted: predictions, scores, explanations, files."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from maxmargin.data.shard_predictions import predicts_shards
from maxmargin.data.sharding import Shards
from maxmargin.metrics import entity_f1, token_accuracy
from maxmargin.persist import Location, save
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.tagger.entity_scores import SEGMENT_TAGS, TaggingModel
from maxmargin.tagger.probable_tagger import ProbableTagger
from maxmargin.tagger.text_tagger import TextTagger
from maxmargin.text.schemes import LabelSequences, spell_entities
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.token_features.transformers import Transformer
from maxmargin.text.token_features.windows import Sentences


@predicts_shards
class FittedTagger(TextTagger, ProbableTagger):
    """What a fitted tagger does; `complete` makes it one."""

    features: Any
    two_stages: bool
    layout: Layout | None

    def complete(
        self,
        features: Transformer,
        model: TaggingModel,
        scheme: str | None,
        inside: str | None = None,
        first: object = None,
    ) -> Self:
        """Become the tagger of a fitted transformer and model, of tags of a scheme and another inside, and a stage."""
        self.features_: Any = features
        self.model_, self.scheme_, self.inside_, self.first_ = model, scheme, inside, first
        return self

    def _set_jobs(self, n_jobs: int | None) -> Self:
        """Predict on so many threads, whatever the fit was on."""
        for stage in (self, self.first_):
            if stage is not None:
                stage.model_.set_params(n_jobs=n_jobs)
        return self

    @property
    def asks_documents(self) -> bool:
        """Whether what a word is tagged depends on its document."""
        return self.two_stages or bool(getattr(getattr(self, "features_", self.features), "elsewhere", False))

    trace_ = property(lambda self: self._fitted().trace_, doc="The certificates of the fit.")
    status_ = property(lambda self: self._fitted().status_, doc="Why the fit stopped.")
    certificate_ = property(lambda self: self._fitted().certificate_, doc="What is proven of the weights.")

    def predict(self, X: Sentences | Shards, *, allowed: object = None) -> list[list[Any]]:
        """The tags of sentences.

        Parameters
        ----------
        X
            As in `fit`.
        allowed
            What is known of their tags, as y in `fit` says it: they are the best that agree with it.
        """
        if self.threshold is not None:
            found = self._find_entities(X, allowed)
            return [spell_entities(entities, n, self.scheme_ or "") for n, entities in found]
        labels = self._fitted().predict(self._rows(X), **self._check_allowed(allowed))
        return self._show([tags.tolist() for tags in labels])

    def predict_topk(self, X: Sentences, k: int, *, allowed: object = None) -> list[tuple[list[list[Any]], np.ndarray]]:
        """The k best taggings of each sentence, best first, with their scores."""
        found = self._fitted().predict_topk(self._rows(X), k, **self._check_allowed(allowed))
        return [(self._show(tags.tolist()), scores) for tags, scores in found]

    def score(self, X: Sentences | Shards, y: LabelSequences | None = None) -> float:
        """The F1 of entities, or the share of right tags where they have no scheme.

        Parameters
        ----------
        X, y
            As in `fit`.
        """
        if isinstance(X, Shards) and y is None:
            y = [tags for shard in X for tags in shard.y]
        if y is None:
            raise TypeError("y must hold the tags of X, but it is None.")
        return (token_accuracy if self.scheme_ is None else entity_f1)(y, self.predict(X))

    def _pack(self) -> dict[str, object]:
        """What is saved: constructor arguments and, of a fitted tagger, what it has learned."""
        names = ("features_", "model_", "scheme_", "inside_", "first_")
        fitted = {name.rstrip("_"): getattr(self, name) for name in names} if hasattr(self, "model_") else None
        return {**self.get_params(deep=False), "fitted": fitted}

    @classmethod
    def _unpack(cls, fitted: Any, **arguments: Any) -> Self:
        """The tagger of what was saved."""
        tagger = cls(**arguments)
        if not isinstance(tagger.layout, Layout | None):
            raise TypeError("the layout of its files is none")
        if fitted is None:
            return tagger
        if not (isinstance(fitted["model"], TaggingModel) and hasattr(fitted["model"], "_w")):
            raise TypeError("the model of the tagger is no fitted one of sequences")
        if isinstance(fitted["features"], SentenceTransformer):
            fitted["features"].transform([])  # which checks its arguments
        if not hasattr(fitted["features"], "transform") or not isinstance(fitted["scheme"], str | None):
            raise TypeError("features or scheme of the tagger are none")
        if fitted.get("inside") not in (None, "IOBES", "BILOU", SEGMENT_TAGS) or not isinstance(
            fitted.get("first"), FittedTagger | None
        ):
            raise TypeError("the scheme inside the tagger, or its first stage, is none")
        return tagger.complete(**fitted)

    def save(self, path: Location) -> None:
        """Write the tagger to a file, in place of what is there; `maxmargin.load` makes it again."""
        save(self, path)
