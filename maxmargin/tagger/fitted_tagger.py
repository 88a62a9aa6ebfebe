"""What taggers do once they are fitted: predictions, scores, explanations, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from maxmargin import inference
from maxmargin.checks import check_share
from maxmargin.data.shard_predictions import predicts_shards
from maxmargin.data.sharding import Shards
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.metrics import entity_curve, entity_f1, token_accuracy
from maxmargin.persist import Location, save
from maxmargin.sklearn_contract import Estimator, SentenceTransformer, check_is_fitted
from maxmargin.tagger.entity_scores import SEGMENT_TAGS, TaggingModel, find_tags, score_entities, tag_probabilities
from maxmargin.text.document_tags import with_votes
from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.text.inner_tags import known_inside, stands_alone
from maxmargin.text.schemes import Entity, LabelSequences, convert_tags, spell_entities
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.token_features.transformers import Transformer
from maxmargin.text.token_features.windows import Sentences
from maxmargin.wording import quote

if TYPE_CHECKING:
    from maxmargin.text.standoff.annotated_texts import TextEntity
    from maxmargin.text.standoff.tokenizer import Tokenizer


@predicts_shards
class FittedTagger(Estimator):
    """What a fitted tagger does; `complete` makes it one."""

    features: Any
    two_stages: bool
    threshold: float | None
    layout: Layout | None

    def complete(
        self,
        features: Transformer,
        model: TaggingModel,
        scheme: str | None,
        inside: str | None = None,
        first: Any = None,
        command: str | None = None,
    ) -> Self:
        """Become the tagger of a fitted transformer and model, of tags of a scheme and another inside, and a stage.

        `command` is what trained it, of those of the command line.
        """
        self.features_: Any = features
        self.model_, self.scheme_, self.inside_, self.first_ = model, scheme, inside, first
        self.command_ = command
        return self

    def _set_jobs(self, n_jobs: int | None) -> Self:
        """Predict on so many threads, whatever the fit was on."""
        for stage in (self, self.first_):
            if stage is not None:
                stage.model_.set_params(n_jobs=n_jobs)
        return self

    def _fitted(self) -> TaggingModel:
        check_is_fitted(self, "model_")
        return self.model_

    @property
    def asks_documents(self) -> bool:
        """Whether what a word is tagged depends on its document."""
        return self.two_stages or bool(getattr(getattr(self, "features_", self.features), "elsewhere", False))

    @property
    def classes_(self) -> np.ndarray:
        """The tags, sorted."""
        return find_tags(self._fitted(), self.scheme_, self.inside_)

    def _rows(self, X: Sentences) -> Any:
        """The features of sentences, as the model has been trained on them."""
        self._fitted()
        return self.features_.transform(add_votes(self.first_, X))

    def _show(self, y: list[list[Any]]) -> list[list[Any]]:
        """Tags in the scheme that users see."""
        return y if self.inside_ is None else convert_tags(y, self.scheme_ or "")

    trace_ = property(lambda self: self._fitted().trace_, doc="The certificates of the fit.")
    status_ = property(lambda self: self._fitted().status_, doc="Why the fit stopped.")
    certificate_ = property(lambda self: self._fitted().certificate_, doc="What is proven of the weights.")

    def _check_allowed(self, allowed: object) -> dict[str, Any]:
        """What is known of the tags of sentences, as the model takes it."""
        if allowed is not None and self.inside_ is not None:
            if not stands_alone(self.scheme_, self.inside_):
                raise ValueError(
                    f"allowed must be None: tags of {self.scheme_} that are known in part cannot be converted to those "
                    f"of {self.inside_}, which the model of the tagger has inside."
                )
            if isinstance(allowed, Sequence | np.ndarray) and not isinstance(allowed, str):
                tags = self._fitted().classes_.tolist()
                allowed = known_inside(allowed, self.scheme_ or "", self.inside_, tags, "allowed")
        return {} if allowed is None else {"allowed": allowed}

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

    def predict_posterior(self, X: Sentences, *, allowed: object = None) -> list[list[Any]]:
        """The tags of sentences that have the most right ones, as expected, of those that keep to the scheme.

        Those that the model has `inside`, if there is another scheme; whatever the `threshold`.
        """
        model = self._fitted()
        if not isinstance(model, ChainCRF | ChainSVM):
            raise TypeError("predict_posterior needs a ChainCRF or a ChainSVM.")
        found = model.predict_posterior(self._rows(X), **self._check_allowed(allowed))
        return self._show([tags.tolist() for tags in found])

    def predict_entities(self, X: Sentences, *, allowed: object = None) -> list[list[ScoredEntity]]:
        """The entities of sentences, each with its probability: that its bounds and its type are right.

        It is exact under the model, summed over all tags of the rest of the sentence. Those of a `ChainCRF` are mostly
        calibrated, those of a `ChainSVM` are not.

        Parameters
        ----------
        X, allowed
            As in `predict`; where the tagger has a threshold, entities below it are left out.
        """
        return [found for _, found in self._find_entities(X, allowed)]

    def entity_probabilities(self, X: Sentences, entities: Sequence[Sequence[Entity]]) -> list[list[float]]:
        """The probabilities of entities of your choice.

        Parameters
        ----------
        X
            As in `predict`.
        entities
            Lists of entities, one for each sentence: first token, the one after the last, type.
        """
        _, found = self._score_entities(X, entities=entities)
        return [[entity.probability for entity in row] for row in found]

    def _find_entities(self, X: Sentences, allowed: object) -> Iterator[tuple[int, list[ScoredEntity]]]:
        """The lengths of sentences and their entities, those below the threshold left out."""
        least = 0.0 if self.threshold is None else self.threshold
        check_share("threshold", least)
        for n, scored in zip(*self._score_entities(X, allowed), strict=True):
            yield n, [entity for entity in scored if entity.probability >= least]

    def _score_entities(
        self, X: Sentences, allowed: object = None, entities: Sequence[Sequence[Entity]] | None = None
    ) -> tuple[list[int], list[list[ScoredEntity]]]:
        """The lengths of sentences, and their best entities, or those that are given, with their probabilities."""
        model = self._fitted()
        if self.scheme_ is None:
            raise ValueError("The tags of this tagger spell no entities: it has no scheme.")
        return score_entities(model, self._rows(X), self._check_allowed(allowed), entities)

    def find_threshold(self, X: Sentences, y: LabelSequences, *, precision: float) -> float:
        """The lowest threshold that gives the entities of held-out sentences a precision: for `threshold`.

        Parameters
        ----------
        X, y
            Sentences as in `fit`, which the tagger was not trained on.
        precision
            The share of the entities left that are to be right.

        Examples
        --------
        >>> from maxmargin import Tagger
        >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
        >>> y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]]
        >>> tagger = Tagger().fit(X, y)
        >>> least = tagger.find_threshold(X, y, precision=0.9)
        >>> tagger.set_params(threshold=least).predict(X) == y
        True
        """
        every = self.threshold
        try:
            self.threshold = None
            return entity_curve(y, self.predict_entities(X)).threshold_for(precision)
        finally:
            self.threshold = every

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

    def confidence(self, X: Sentences) -> np.ndarray:
        """How sure the tagger is of each sentence: the probability of its best tags, per token (a geometric mean).

        What it is least sure of is worth most if people tag it: `maxmargin suggest`. Sentences without tokens have 1.

        Parameters
        ----------
        X
            As in `predict`.

        Returns
        -------
        (n,) array
        """
        model = self._fitted()
        problem = model._problem(self._rows(X))
        best = inference.best_outputs(problem, model._w, model.n_jobs)
        likelihoods = inference.log_likelihoods(problem, model._w, model.n_jobs, best)
        return np.exp(np.minimum(likelihoods, 0.0) / np.maximum(np.diff(best.starts), 1))

    def predict_topk(self, X: Sentences, k: int, *, allowed: object = None) -> list[tuple[list[list[Any]], np.ndarray]]:
        """The k best taggings of each sentence, best first, with their scores."""
        found = self._fitted().predict_topk(self._rows(X), k, **self._check_allowed(allowed))
        return [(self._show(tags.tolist()), scores) for tags, scores in found]

    def predict_marginals(self, X: Sentences, *, allowed: object = None) -> list[np.ndarray]:
        """The probabilities of the tags of each word: (T_i, L) arrays, columns in the order of `classes_`."""
        model, known = self._fitted(), self._check_allowed(allowed)
        return tag_probabilities(model, self._rows(X), known, self.scheme_, self.inside_)

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
        names = ("features_", "model_", "scheme_", "inside_", "first_", "command_")
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


def add_votes(first: Any, X: Any) -> Any:
    """Sentences with what the first of two stages makes of their words; as they are, if there is none."""
    if first is None:
        return X
    X = X if isinstance(X, Sequence) else [*X]
    return with_votes(X, first.predict(X))
