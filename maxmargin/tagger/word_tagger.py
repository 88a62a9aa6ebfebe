"""A tagger: features of words, a model of sequences and a scheme of tags, in one estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_numbers, check_flag
from maxmargin.data.sharding import Shards
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.paths.regularization import regularization_path
from maxmargin.paths.solutions import Path
from maxmargin.persist import register
from maxmargin.sklearn_contract import unfitted
from maxmargin.tagger.entity_scores import TaggingModel, check_options, choose_inside
from maxmargin.tagger.preferences import check_preference, weigh_mistakes
from maxmargin.tagger.shown_tagger import ShownTagger
from maxmargin.tagger.training_data import (
    as_tags,
    describe_shards,
    fit_shards,
    is_for_workers,
    read_held_out,
    sentences_of,
    stage_sentences,
    tags_in_shards,
    tags_of,
)
from maxmargin.text.inner_tags import keep_possible, known_inside, stands_alone
from maxmargin.text.mending import mend_in_scheme
from maxmargin.text.partial_tags import check_entity_share, have_partial
from maxmargin.text.schemes import OUTSIDE, LabelSequences
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.tag_conversion import convert_tags
from maxmargin.text.token_features.transformers import Transformer, fit_transform, warn_of_lists
from maxmargin.text.token_features.windows import Sentences, WindowFeatures
from maxmargin.wording import quote

if TYPE_CHECKING:
    from sklearn.utils import Tags

GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # values of C to try, as long as it pays
ENOUGH = 2  # of them in a row that are no better than a smaller one


class Tagger(ShownTagger):
    """Tags the words of sentences: entities, chunks, parts of speech.

    `WindowFeatures` describe the words, and a `ChainCRF` or `ChainSVM` tags them, or a `SegmentCRF` or `SegmentSVM`.
    Its predictions keep to the scheme of entities, if tags spell any. The defaults train a good tagger without tuning.

    Parameters
    ----------
    features : transformer, default=None
        From sentences to features by name; None is `WindowFeatures` with its defaults.
    model : ChainCRF, ChainSVM, SegmentCRF or SegmentSVM, default=None
        None is ``ChainCRF(only_observed=True, C=3)``. Its `constraints` and `scoring` are set by the scheme, unless
        they are given: held-out sentences are scored by the F1 of entities, or by the share of right tags.
    scheme : str, default="auto"
        The scheme of the tags. "auto" finds the one that fits y best; tags that spell no entities, such as parts of
        speech, have none. With the name of a scheme, such as "BILOU", tags are converted to it. Those that break the
        rules are mended, with a warning: see `maxmargin.text.mend_tags`. None is none.
    inside : {"auto", "IOBES", "BILOU"}, default="auto"
        The scheme that the model has inside, while y, predictions and `classes_` are in the scheme of the tags: ends of
        entities help to find them, where there are enough to learn from. "auto" is IOBES from 3,000 entities on, unless
        tags are known in part, or arguments of the model speak of tags; None is the scheme of the tags.
    two_stages : bool, default=False
        Whether a first tagger tells a second one how each word is tagged most often in its document: see
        `maxmargin.text.Corpus`. To train on, sentences are tagged by taggers of other documents, in five parts.
    layout : Layout, default=None
        Where the files that it was trained on have tokens and tags, so that it can read others.
    entity_share : float, default=None
        The expected share of tokens that are part of entities, from 0 to 1, where many tags are not known: if only some
        of the entities are, nothing else tells a `ChainCRF` that most of the other tokens are outside.
    threshold : float, default=None
        The probability that entities must have to be predicted, which may be changed after the fit: see
        `find_threshold`. `predict_topk`, `predict_marginals` and `predict_posterior` do not ask for it.
    prefer : {"recall", "precision"}, default=None
        Which of both is to be higher, at the expense of the other: in training, tokens of entities that are taken to be
        outside, or the reverse, cost more than other mistakes.

    Attributes
    ----------
    classes_ : (L,) array
        The tags, sorted.
    scheme_ : str or None
        The scheme of its tags.
    first_ : Tagger or None
        That of the first stage, if there are two.
    model_
        The fitted model.
    features_
        The fitted transformer.

    Examples
    --------
    >>> from maxmargin import Tagger
    >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]]
    >>> tagger = Tagger().fit(X, y)
    >>> tagger.scheme_, tagger.predict([["Bob", "lives", "in", "Rome"]])
    ('IOB2', [['B-PER', 'O', 'O', 'B-LOC']])
    >>> found = tagger.explain(["Bob", "ran"], 0)
    >>> found.label, found.rival
    ('B-PER', 'O')
    """

    def __init__(
        self,
        *,
        features: Transformer | None = None,
        model: TaggingModel | None = None,
        scheme: str | None = "auto",
        inside: str | None = "auto",
        two_stages: bool = False,
        layout: Layout | None = None,
        entity_share: float | None = None,
        threshold: float | None = None,
        prefer: str | None = None,
    ) -> None:
        self.features: Any = features
        self.model: Any = model
        self.scheme = scheme
        self.inside = inside
        self.two_stages = two_stages
        self.layout = layout
        self.entity_share = entity_share
        self.threshold = threshold
        self.prefer = prefer

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def set_params(self, **params: object) -> Self:
        """Change parameters, also those of parts, as ``model__C``: of the default parts where none were given."""
        for name, make in (("features", WindowFeatures), ("model", default_model)):
            if getattr(self, name) is None and any(key.startswith(f"{name}__") for key in params):
                params = {name: make(), **params}
        return super().set_params(**params)

    def prepare(self, y: LabelSequences, *, is_free: bool = True) -> tuple[Self, LabelSequences]:
        """An unfitted tagger with everything chosen, features, model and schemes, and the tags that it is to learn.

        Parameters
        ----------
        y : list of lists of tags
        is_free
            Whether the model may learn other tags.
        """
        if not isinstance(self.model, TaggingModel | None):
            raise TypeError(f"model must be a ChainCRF, ChainSVM, SegmentCRF or SegmentSVM, not {quote(self.model)}.")
        if not (self.features is None or hasattr(self.features, "transform")):
            raise TypeError(f"features must be a transformer, such as WindowFeatures(), not {quote(self.features)}.")
        features = WindowFeatures() if self.features is None else unfitted(self.features)
        model = default_model() if self.model is None else unfitted(self.model)
        check_flag("two_stages", self.two_stages)
        mended = mend_in_scheme(y, self.scheme)
        parts: dict[str, Any] = {"features": features, "model": model}
        parts |= {name: getattr(self, name) for name in ("layout", "two_stages", "prefer")}
        inside = choose_inside(model, self.inside, self.prefer, mended, is_free=is_free)
        if self.prefer is not None:
            check_preference(self.prefer, model, have_entities=mended is not None)
        if self.entity_share is not None:
            if mended is None or not isinstance(model, ChainCRF):
                raise ValueError("entity_share needs tags that spell entities, and a ChainCRF.")
            check_entity_share(self.entity_share, mended.y)
            model.set_params(label_share={OUTSIDE: 1 - self.entity_share})
        if mended is None:
            return type(self)(**parts, scheme=None, inside=None), y
        if inside is not None and have_partial(mended.y) and not stands_alone(mended.scheme, inside):
            raise ValueError(
                f"inside must be None: tags of {mended.scheme} that are known in part cannot be converted to {inside}."
            )
        if isinstance(model, ChainCRF | ChainSVM) and model.constraints is None:
            model.set_params(constraints=(inside or mended.scheme).lower())
        if model.scoring is None:
            model.set_params(scoring="entity_f1")
        return type(self)(**parts, scheme=mended.scheme, inside=inside), mended.y

    def _convert_inside(self, y: Any) -> Any:
        """The tags that the model learns, of those of the scheme."""
        if self.inside is None:
            return y
        if not have_partial(y):
            return convert_tags(y, self.inside)
        return keep_possible(known_inside(y, self.scheme or "", self.inside, None, "y"), self.inside, "y")

    def fit(
        self,
        X: Sentences | Shards,
        y: LabelSequences | None = None,
        *,
        X_dev: Sentences | Shards | None = None,
        y_dev: LabelSequences | None = None,
        **options: Any,
    ) -> Self:
        """Train on sentences.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags, or Shards of them and their tags
            With a client, also paths of files of tagged sentences, ``dask.delayed`` pairs of sentences and tags, or a
            ``dask.bag`` of them: workers read them, and make the features.
        y : list of lists of tags
            None where a tag is not known, a set where it is one of several, or a dict of probabilities.
        X_dev, y_dev
            Held-out sentences like X and y: the best weights on them are kept, and end the fit.
        options
            Further arguments of the `fit` of models, such as sample_weight and callback.

        Returns
        -------
        self
        """
        check_options(options)
        if isinstance(X, Shards):
            return fit_shards(self, X, X_dev, y_dev, y=y, **options)
        if options.get("client") is not None and (y is None or is_for_workers(self)):
            from maxmargin.tagger.clustered_tagger import fit_on_workers  # which needs Dask

            return fit_on_workers(self, X, y, X_dev, y_dev, **options)
        chosen, tags = self.prepare(as_tags(y), is_free=options.get("transition_cost") is None)
        first, X, features = stage_sentences(chosen, X, tags)
        tags = chosen._convert_inside(tags)
        model = weigh_mistakes(chosen.model, chosen.prefer, tags)
        rows, held_out = fit_transform(features, X, tags), read_held_out(chosen, features, X_dev, y_dev, first)
        warn_of_lists(features, X, tags, sentences_of(X_dev), tags_of(held_out))
        model.fit(rows, tags, **held_out, **options)
        return self.complete(features, model, chosen.scheme, chosen.inside, first)

    def partial_fit(
        self,
        X: Sentences | Shards,
        y: LabelSequences | None = None,
        *,
        X_dev: Sentences | Shards | None = None,
        y_dev: LabelSequences | None = None,
        **options: Any,
    ) -> Self:
        """Go on from a fitted tagger with further sentences, as `ChainCRF.partial_fit`; words and tags may be new.

        Features are those of the first fit, and tags are converted to its scheme. One that is not fitted is fitted.

        Parameters
        ----------
        X, y, X_dev, y_dev, options
            As in `fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y, X_dev=X_dev, y_dev=y_dev, **options)
        check_options(options)
        if self.first_ is not None:
            raise ValueError("partial_fit needs a tagger of one stage: two_stages must be False.")
        known = tags_in_shards(X) if isinstance(X, Shards) else as_tags(y)
        chosen = type(self)(features=self.features_, model=self.model_, scheme=self.scheme_, inside=self.inside_)
        mended, held_out = mend_in_scheme(known, chosen.scheme), read_held_out(chosen, self.features_, X_dev, y_dev)
        tags = known if mended is None else chosen._convert_inside(mended.y)
        if isinstance(X, Shards):
            self.model_.partial_fit(describe_shards(self.features_, X, tags), y, **held_out, **options)
        else:
            self.model_.partial_fit(self.features_.transform(X), tags, **held_out, **options)
        return self

    def tune(
        self,
        X: Sentences,
        y: LabelSequences,
        X_dev: Sentences,
        y_dev: LabelSequences,
        *,
        Cs: ArrayLike | None = None,
        eps: float | None = None,
        callback: Callable[[Path], object] | None = None,
    ) -> Path:
        """Train for several strengths of the regularization, each from the weights before; keep the best.

        Parameters
        ----------
        X, y
            As in `fit`.
        X_dev, y_dev
            Held-out sentences, on which models are scored.
        Cs
            The values of C to try; by default 0.03, 0.1, 0.3 and so on, until two in a row are no better than a smaller
            one. `Path.is_best_at_end` tells where others may be better than all of them.
        eps
            How far from its optimum an objective may be, of SVMs; by default, and of CRFs, their tol tells it.
        callback
            Called with the `Path` after each C; it ends if that returns True.

        Returns
        -------
        Path
            With the scores; the tagger itself has the model of the best one.
        """
        grid = as_numbers("Cs", GRID if Cs is None else Cs)
        if grid.ndim != 1 or not len(grid) or not ((grid > 0) & (grid < np.inf)).all():
            raise ValueError(f"Cs must be a list of positive numbers, not {quote(Cs)}.")
        for name, value in (("X", X), ("X_dev", X_dev)):
            if isinstance(value, Shards):
                raise TypeError(f"{name} must be a list of sentences in tune, not Shards: call fit for each C to try.")
        chosen, tags = self.prepare(as_tags(y))
        first, X, features = stage_sentences(chosen, X, tags)
        tags = chosen._convert_inside(tags)
        rows = fit_transform(features, X, tags)
        lambdas = 1.0 / (len(rows) * grid)
        held_out = read_held_out(chosen, features, X_dev, y_dev, first)
        warn_of_lists(features, X, tags, X_dev, held_out["y_dev"])
        is_past_best = False

        def watch(path: Path) -> bool:
            nonlocal is_past_best
            is_past_best = Cs is None and len(path) - int(np.argmax(path.scores)) > ENOUGH
            return bool(callback is not None and callback(path)) or is_past_best

        path = regularization_path(
            weigh_mistakes(chosen.model, chosen.prefer, tags),
            rows,
            tags,
            method="grid",
            lambdas=lambdas,
            eps=eps,
            callback=watch,
            **held_out,
        )
        path.interrupted &= not is_past_best
        self.complete(features, path.model_at(path.best_lambda), chosen.scheme, chosen.inside, first)
        return path


def default_model() -> ChainCRF:
    """The model of a tagger that was given none; its C is by `benchmarks.tagger_defaults`."""
    return ChainCRF(only_observed=True, C=3.0)


register(Tagger, get=Tagger._pack, make=Tagger._unpack)
