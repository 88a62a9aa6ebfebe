"""What taggers show people: why a word has its tag, and a page on all that they have learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maxmargin.display.notebook import offer_model, show_model
from maxmargin.inspection import Explanation, explain_all
from maxmargin.persist.files import Location, check_writable
from maxmargin.tagger.entity_scores import MARK_ENDS
from maxmargin.tagger.fitted_tagger import FittedTagger
from maxmargin.text.corpus import Corpus
from maxmargin.text.inner_tags import outer_tag
from maxmargin.text.partial_tags import check_known
from maxmargin.text.schemes import LabelSequences
from maxmargin.text.token_features.tokens import Token
from maxmargin.text.token_features.windows import Sentences


class ShownTagger(FittedTagger):
    """A tagger that people can look into, once it is fitted."""

    _repr_html_ = show_model
    _repr_mimebundle_ = offer_model

    def report(
        self,
        path: Location,
        X: Sentences | None = None,
        y: LabelSequences | None = None,
        *,
        train: tuple[Sentences, LabelSequences] | None = None,
        others: Mapping[str, FittedTagger] | None = None,
        title: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write a page, in one file of HTML that needs no network, on what the tagger has learned and gets wrong.

        Parameters
        ----------
        path
            The file to write.
        X, y
            Sentences as in `fit`, which the tagger was not trained on: without them there are no scores.
        train
            Sentences and tags that it was trained on, to be compared with the others.
        others
            Taggers to compare with on the same sentences, by name.
        title
            What to call the tagger; by default the name of the file.
        command
            What made the tagger, to be told; by default what `maxmargin train` was asked for, if that did it.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from maxmargin import Tagger
        >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
        >>> y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tagger().fit(X, y).report(Path(folder) / "fit.html", X, y)
        ...     (Path(folder) / "fit.html").read_text()[:15]
        '<!DOCTYPE html>'
        """
        from maxmargin.display.page import write_page  # which other taggers do without
        from maxmargin.report.tagger_report import report_tagger

        self._fitted()
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together.")
        test = None if X is None or y is None else check_examples(X, y, "X", "y")
        known = None if train is None else check_examples(*train, "train[0]", "train[1]")
        target = check_writable(path)
        name, made_by = title or target.stem, command or self.model_.command_
        page = report_tagger(self, test, train=known, others=others, name=name, command=made_by)
        write_page(path, page)

    def explain(
        self, sentence: Iterable[Token], position: int, rival: object = None, *, document: Sentences = ()
    ) -> Explanation:
        """Why a word has its tag and not another: see `maxmargin.inspection.explain`.

        Tags are those that users see; where the tagger has another scheme inside, transitions are those of its tags.

        Parameters
        ----------
        sentence
            A list of words, or of tuples of a word and tags.
        position
            Which word, from 0.
        rival
            The tag to compare with; by default the runner-up.
        document
            The other sentences of its document, for taggers that look at them.
        """
        sentences = [[*sentence], *document]
        return self.explain_words(Corpus(sentences, [0] * len(sentences)), [(0, position, rival)])[0]

    def explain_words(self, X: Sentences, words: Iterable[tuple[int, int, object]]) -> list[Explanation]:
        """What `explain` says of several words.

        Parameters
        ----------
        X
            Sentences as in `predict`, in their documents.
        words
            For each word the number of its sentence, its position there, and the tag to compare with, or None.

        Examples
        --------
        >>> from maxmargin import Tagger
        >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"]]
        >>> tagger = Tagger().fit(X, [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"]])
        >>> [found.label for found in tagger.explain_words(X, [(0, 3, None), (1, 0, "O")])]
        ['B-LOC', 'B-PER']
        """
        words, model = [*words], self._fitted()
        if not self.asks_documents:
            numbers = {i: k for k, i in enumerate(dict.fromkeys(i for i, _, _ in words))}
            sentences = X if isinstance(X, Sequence) else [*X]
            X, words = [sentences[i] for i in numbers], [(numbers[i], t, rival) for i, t, rival in words]
        tags, scheme = model.classes_.tolist(), self.scheme_ or ""
        names = [outer_tag(tag, scheme) for tag in tags] if self.inside_ in MARK_ENDS else None
        return explain_all(model, self._rows(X), words, names=names)


def check_examples(X: Any, y: Any, name_X: str, name_y: str) -> tuple[list[Any], list[Any]]:
    """Sentences, in their documents, and their tags; raises unless all are known, and there is one for each token."""
    X, y = X if isinstance(X, Corpus) else [[*sentence] for sentence in X], [[*tags] for tags in y]
    check_known(y, name_y)
    if len(X) != len(y):
        raise ValueError(f"{name_X} has {len(X)} sentences, but {name_y} has {len(y)}.")
    for i, (sentence, tags) in enumerate(zip(X, y, strict=True)):
        if len(sentence) != len(tags):
            raise ValueError(f"{name_X}[{i}] has {len(sentence)} tokens, but {name_y}[{i}] has {len(tags)} tags.")
    return X, y
