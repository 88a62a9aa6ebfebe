"""What taggers do once they are fitted: predictions, scores, explanations, files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from maxmargin.data.shard_predictions import predicts_shards
from maxmargin.data.sharding import Shards
from maxmargin.metrics import entity_f1, token_accuracy
from maxmargin.persist import Location, save
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.tagger.entity_scores import SEGMENT_TAGS, TaggingModel
from maxmargin.tagger.probable_tagger import ProbableTagger
from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.text.schemes import LabelSequences, spell_entities
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.token_features.transformers import Transformer
from maxmargin.text.token_features.windows import Sentences
from maxmargin.wording import quote

if TYPE_CHECKING:
    from maxmargin.text.standoff.annotated_texts import TextEntity
    from maxmargin.text.standoff.tokenizer import Tokenizer


@predicts_shards
class FittedTagger(ProbableTagger):
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
        first: Any = None,
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

    def tag(self, text: str, tokenizer: str | Tokenizer | None = None) -> list[TextEntity]:
        """The entities of a text as it is, by their characters.

        Taggers whose tags spell no entities, such as parts of speech, have a tag for each token.

        Parameters
        ----------
        text
            All of a document.
        tokenizer
            What makes sentences of tokens of it: a name as in `Layout`, or a function from a text to lists of tokens,
            pairs of the first character and the one after the last. By default that of the texts that the tagger was
            trained on, or `maxmargin.text.tokenize`.

        Returns
        -------
        list of `TextEntity`

        Examples
        --------
        >>> from maxmargin import Tagger
        >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
        >>> y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]]
        >>> tagger = Tagger().fit(X, y)
        >>> [found[:4] for found in tagger.tag("Bob  lives in Rome.")]
        [(0, 3, 'PER', 'Bob'), (14, 18, 'LOC', 'Rome')]
        """
        (found,) = self.tag_all([text], tokenizer)
        return found

    def tag_all(self, texts: Iterable[str], tokenizer: str | Tokenizer | None = None) -> list[list[TextEntity]]:
        """The entities of several texts, each of which is a document: as `tag`, in less time."""
        from maxmargin.text.standoff.text_documents import tokenize_texts  # which other taggers do without

        texts = [*texts]
        for k, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{k}] must be a string, not {quote(text)}.")
        if tokenizer is None and self.layout is not None:
            tokenizer = self.layout.tokenizer
        document = tokenize_texts(texts, tokenizer)
        return [[*(text.entities or ())] for text in document.with_entities(self.find_spans(document.X))]

    def find_spans(self, X: Sentences) -> list[list[ScoredEntity]]:
        """The entities of sentences or, where tags spell none, the tag of each token, with probabilities."""
        X = X if isinstance(X, Sequence) else [*X]
        are_words = isinstance(next(chain.from_iterable(X), None), str)
        if are_words and self.layout is not None and isinstance(self.layout.x, tuple):
            raise ValueError(
                f"The tagger was trained on tokens of {len(self.layout.x)} columns, but texts have words only: train "
                "one without the other columns."
            )
        if self._fitted() and self.scheme_ is not None:
            return self.predict_entities(X)
        index = {tag: k for k, tag in enumerate(self.classes_.tolist())}
        found = zip(self.predict(X), self.predict_marginals(X), strict=True)
        return [
            [ScoredEntity(t, t + 1, tag, float(table[t, index[tag]])) for t, tag in enumerate(tags)]
            for tags, table in found
        ]

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

    def _pack(self) -> dict[str, Any]:
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
