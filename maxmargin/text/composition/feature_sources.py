"""Transformers and functions of sentences, side by side in one model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from maxmargin.parameters import has_parameters, parameter
from maxmargin.persist.registry import register
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.text.composition.source_rows import ItemRows, Maker, SourceRows, as_rows
from maxmargin.text.token_features.tokens import as_sentences
from maxmargin.text.token_features.transformers import fit_transform
from maxmargin.text.token_features.windows import Sentences
from maxmargin.wording import quote


@register
@has_parameters
class FeatureSources(SentenceTransformer):
    """Features of several transformers of sentences, and functions of your own, side by side in one model.

    A name that several sources make is one feature. One of them may have dense columns beside its names.

    Examples
    --------
    >>> from maxmargin import Tagger
    >>> from maxmargin.text import FeatureSources, WindowFeatures
    >>> def lengths(sentence):
    ...     return [{"is_long": len(word) > 4} for word in sentence]
    >>> features = FeatureSources(sources=[WindowFeatures(window=0, affixes=0, shapes=False), lengths])
    >>> features.transform([["the", "terrier"]])[0][1]
    ['word=terrier', 'lower=terrier', 'words[-1]=the|terrier', 'is_long']
    >>> tagger = Tagger(features=features).fit([["the", "terrier"]], [["DET", "NOUN"]])
    >>> tagger.predict([["the", "poodle"]])
    [['DET', 'NOUN']]

    So that models can be saved, functions are objects of classes that are registered, as a file imports nothing:

    >>> import maxmargin
    >>> from dataclasses import dataclass
    >>> @maxmargin.register
    ... @dataclass
    ... class Lengths:
    ...     least: int = 5
    ...     def __call__(self, sentence):
    ...         return [{"is_long": len(word) >= self.least} for word in sentence]
    >>> features = FeatureSources(sources=[WindowFeatures(), Lengths(least=4)])
    >>> Tagger(features=features).fit([["the", "terrier"]], [["DET", "NOUN"]]).save("lengths.model")
    """

    sources: Sequence[Any] = parameter(
        "list",
        "Transformers, such as `WindowFeatures` and `TemplateFeatures`, and functions from a sentence, as it was "
        "given, to a list with the features of each token: a list of names, or a dict of strings and bools by name.",
    )

    def _transformers(self) -> list[Any]:
        """The sources, functions among them as transformers."""
        if not isinstance(self.sources, list | tuple) or not self.sources:
            raise TypeError(f"sources must be a list of transformers or functions, not {quote(self.sources)}.")
        for k, source in enumerate(self.sources):
            if isinstance(source, type) or not (hasattr(source, "transform") or callable(source)):
                raise TypeError(f"sources[{k}] must be a transformer or a function, not {quote(source)}.")
        return [source if hasattr(source, "transform") else OwnFunction(source) for source in self.sources]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformers.

        Parameters
        ----------
        X, y
            Sentences and their tags.
        """
        for transformer in self._transformers():
            transformer.fit(X, y)
        return self

    def fit_transform(self, X: Sentences, y: Any = None) -> SourceRows:
        """The features of the tokens to train on, which may differ from those of `transform`: see `WindowFeatures`.

        Parameters
        ----------
        X, y
            Sentences and their tags.

        Returns
        -------
        as `transform`
        """
        X = as_sentences(X)
        return SourceRows([as_rows(fit_transform(transformer, X, y)) for transformer in self._transformers()])

    def transform(self, X: Sentences) -> SourceRows:
        """The features of the tokens, as those of `WindowFeatures.transform`."""
        X = as_sentences(X)
        return SourceRows([as_rows(transformer.transform(X)) for transformer in self._transformers()])

    @property
    def elsewhere(self) -> bool:
        """Whether features depend on documents."""
        return any(getattr(source, "elsewhere", False) for source in self.sources)

    @property
    def cross_fit_(self) -> list[str]:
        """The lists that were found to be made of the sentences to train on."""
        return [title for source in self.sources for title in getattr(source, "cross_fit_", [])]

    def leaks(self, *data: object) -> Iterator[str]:
        """What there is to say of lists that know far more entities of y than of held-out sentences."""
        for source in self.sources:
            if hasattr(source, "leaks"):
                yield from source.leaks(*data)


class OwnFunction:
    """A function of sentences as a transformer."""

    def __init__(self, make: Maker) -> None:
        self.make = make

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> ItemRows:
        """What the function makes, when it is asked for."""
        return ItemRows(X, self.make)
