"""What fitted taggers say of how probable tags and entities are: exactly, by the model that is within."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin.checks import check_share
from maxmargin.data.shard_predictions import predicts_shards
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.foundation.fitting import as_known
from maxmargin.estimators.foundation.predictions import log_likelihoods
from maxmargin.metrics import entity_curve
from maxmargin.sklearn_contract import Estimator, check_is_fitted
from maxmargin.tagger.entity_scores import TaggingModel, find_tags, score_entities, tag_probabilities
from maxmargin.text.document_tags import with_votes
from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.text.inner_tags import known_inside, merge_pairs, stands_alone
from maxmargin.text.partial_tags import is_partial
from maxmargin.text.schemes import Entity, LabelSequences, read_tags, sequences_of, violation
from maxmargin.text.tag_conversion import convert_tags
from maxmargin.text.token_features.windows import Sentences
from maxmargin.wording import name_type


@predicts_shards
class ProbableTagger(Estimator):
    """The probabilities of a fitted tagger, which has a transformer, a model of sequences, and a scheme of tags."""

    features_: Any
    model_: TaggingModel
    scheme_: str | None
    inside_: str | None
    first_: Any
    threshold: float | None

    def _fitted(self) -> TaggingModel:
        check_is_fitted(self, "model_")
        return self.model_

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

    def _known_inside(self, known: object, name: str) -> Any:
        """What is known of the tags of sentences, `name` in messages, as the model takes it."""
        known = [*known] if isinstance(known, Iterator) else as_known(known)
        if self.inside_ is None or isinstance(known, str) or not isinstance(known, Sequence | np.ndarray):
            return known  # of which the model tells what is wrong
        scheme = self.scheme_ or ""
        if stands_alone(scheme, self.inside_):
            return known_inside(known, scheme, self.inside_, self._fitted().classes_.tolist(), name)
        if any(row is None for row in known) or any(map(is_partial, chain.from_iterable(sequences_of(known, name)))):
            raise ValueError(
                f"{name} must not be known in part: such tags of {scheme} cannot be converted to those of "
                f"{self.inside_}, which the model of the tagger has inside."
            )
        broken = violation(read_tags(known, name), scheme, name)
        if broken:
            raise broken
        return convert_tags(known, self.inside_)

    def _check_allowed(self, allowed: object) -> dict[str, Any]:
        """The argument of the model for what is known of the tags of sentences."""
        return {} if allowed is None else {"allowed": self._known_inside(allowed, "allowed")}

    def log_likelihood(self, X: Sentences, y: LabelSequences) -> np.ndarray:
        """The logarithms of the probabilities of tags of sentences, exact under the model.

        Those of tags that break the rules of the scheme are minus infinity, or an error says where they do: if the
        tagger has another scheme inside, or y is known in part.

        Parameters
        ----------
        X
            As in `predict`.
        y
            Tags of the scheme, as in `predict`. Where less is known of a token, None or a set of tags, it is the
            probability of all taggings together that agree with it.

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import Tagger
        >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
        >>> tagger = Tagger().fit(X, [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]])
        >>> one, either, any_at_all = tagger.log_likelihood(
        ...     [["Ann", "fell"]] * 3, [["B-PER", "O"], [{"B-PER", "B-LOC"}, "O"], [None, None]]
        ... )
        >>> bool(one < either < any_at_all), np.allclose(any_at_all, 0.0)
        (True, True)
        """
        return log_likelihoods(self._fitted(), self._rows(X), self._known_inside(y, "y"))

    def predict_posterior(self, X: Sentences, *, allowed: object = None) -> list[list[Any]]:
        """The tags of sentences that have the most right ones, as expected, of those that keep to the scheme.

        Those that the model has `inside`, if there is another scheme; whatever the `threshold`.
        """
        found = self._fitted().predict_posterior(self._rows(X), **self._check_allowed(allowed))
        return self._show([tags.tolist() for tags in found])

    def predict_transitions(self, X: Sentences, *, allowed: object = None) -> list[np.ndarray]:
        """The probabilities of the tags of every two neighbours, by models of chains.

        Parameters
        ----------
        X, allowed
            As in `predict`.

        Returns
        -------
        list of (T_i - 1, L, L) arrays
            The first of both in rows, the second in columns, in the order of `classes_`.

        Examples
        --------
        >>> from maxmargin import Tagger
        >>> tagger = Tagger().fit([["Ann", "ran"], ["Bob", "sat"]], [["B-PER", "O"], ["B-PER", "O"]])
        >>> (pairs,) = tagger.predict_transitions([["Ann", "sat"]])
        >>> pairs.shape, bool(pairs[0, 0, 1] > 0.5)
        ((1, 2, 2), True)
        """
        model, known = self._fitted(), self._check_allowed(allowed)
        if not isinstance(model, ChainCRF | ChainSVM):
            raise TypeError(f"predict_transitions needs a ChainCRF or a ChainSVM, not {name_type(model)}.")
        if self.inside_ is not None and not stands_alone(self.scheme_, self.inside_):
            raise ValueError(
                f"predict_transitions needs {self.scheme_} as the scheme of the model: with {self.inside_} inside, a "
                "tag depends on more than one neighbour."
            )
        found = model.predict_transitions(self._rows(X), **known)
        if self.inside_ is None:
            return found
        return [merge_pairs(table, model.classes_.tolist(), self.scheme_ or "") for table in found]

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
        >>> X, y = [["Bob", "saw", "Rome"], ["Rome", "fell"]], [["B-PER", "O", "B-LOC"], ["B-LOC", "O"]]
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

    def predict_marginals(self, X: Sentences, *, allowed: object = None) -> list[np.ndarray]:
        """The probabilities of the tags of each word: (T_i, L) arrays, columns in the order of `classes_`."""
        model, known = self._fitted(), self._check_allowed(allowed)
        return tag_probabilities(model, self._rows(X), known, self.scheme_, self.inside_)


def add_votes(first: Any, X: Any) -> Any:
    """Sentences with what the first of two stages makes of their words; as they are, if there is none."""
    if first is None:
        return X
    X = X if isinstance(X, Sequence) else [*X]
    return with_votes(X, first.predict(X))
