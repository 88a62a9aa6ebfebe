"""What taggers find in texts as they are: entities by their characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.wording import quote

if TYPE_CHECKING:
    from maxmargin.text.standoff.annotated_texts import TextEntity
    from maxmargin.text.standoff.tokenizer import Tokenizer
    from maxmargin.text.token_features.windows import Sentences


class TextTagger:
    """What finds entities in texts, of what predicts them in sentences."""

    layout: Any
    scheme_: Any
    classes_: Any
    predict: Callable[..., list[list[Any]]]
    predict_entities: Callable[..., list[list[ScoredEntity]]]
    predict_marginals: Callable[..., list[np.ndarray]]

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
        >>> X, y = [["Bob", "saw", "Rome"], ["Rome", "fell"]], [["B-PER", "O", "B-LOC"], ["B-LOC", "O"]]
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
        index = {tag: k for k, tag in enumerate(self.classes_.tolist())}
        X = X if isinstance(X, Sequence) else [*X]
        are_words = isinstance(next(chain.from_iterable(X), None), str)
        if are_words and self.layout is not None and isinstance(self.layout.x, tuple):
            raise ValueError(
                f"The tagger was trained on tokens of {len(self.layout.x)} columns, but texts have words only: train "
                "one without the other columns."
            )
        if self.scheme_ is not None:
            return self.predict_entities(X)
        found = zip(self.predict(X), self.predict_marginals(X), strict=True)
        return [
            [ScoredEntity(t, t + 1, tag, float(table[t, index[tag]])) for t, tag in enumerate(tags)]
            for tags, table in found
        ]
