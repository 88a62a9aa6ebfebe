"""Features of tokens, and of what is between them, by templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from maxmargin.parameters import has_parameters, parameter
from maxmargin.persist import Location
from maxmargin.persist.registry import register
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.text.sentence_files.line_files import Lines
from maxmargin.text.templates.template_lines import Template, read_lines
from maxmargin.text.token_features.named_features import FeatureColumns, Sliced
from maxmargin.text.token_features.tokens import Token, as_sentences, split_tokens
from maxmargin.text.token_features.windows import Sentences
from maxmargin.wording import count_of, name_type


@register
@has_parameters
class TemplateFeatures(SentenceTransformer):
    r"""Features of the tokens of sentences by the templates of CRF++ and Wapiti, for `ChainCRF` and `ChainSVM`.

    Columns of templates are the word, column 0, and the tags of a token. Lines that begin with B, or ``*``, and have a
    macro make features of transitions; one of B alone is there in any case, as models have weights of transitions.

    Examples
    --------
    >>> from maxmargin.text import TemplateFeatures
    >>> features = TemplateFeatures(template="U00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\nB01:%x[0,1]")
    >>> rows = features.transform([[("the", "DT"), ("dog", "NN")]])
    >>> rows[0]
    [['U00:_B-1', 'U01:the/DT'], ['U00:the', 'U01:dog/NN']]
    >>> rows.edge_features()[0]
    [['B01:NN']]

    In a tagger:

    >>> from maxmargin import Tagger
    >>> tagger = Tagger(features=features).fit([[("the", "DT"), ("dog", "NN")]], [["B-NP", "I-NP"]])
    >>> tagger.predict([[("the", "DT"), ("cat", "NN")]])
    [['B-NP', 'I-NP']]
    """

    template: str = parameter("str", "The lines of a template file: `read_template` reads one.", default="U00:%x[0,0]")

    def fit(self, X: object, y: object = None) -> Self:
        """Check the template; there is nothing to learn, and `transform` works without.

        Parameters
        ----------
        X, y
            Ignored.
        """
        self._read()
        return self

    def _read(self) -> list[Template]:
        if not isinstance(self.template, str):
            raise TypeError(f"template must be the text of a template, not {name_type(self.template)}.")
        return read_lines(self.template)

    def transform(self, X: Sentences) -> TemplateRows:
        """The features of the tokens, as those of `WindowFeatures.transform`."""
        return TemplateRows(self._read(), as_sentences(X))


def read_template(path: Location, *, encoding: str = "utf-8") -> TemplateFeatures:
    r"""The features that a template file of CRF++ or Wapiti describes.

    Parameters
    ----------
    path
        The file.
    encoding
        Of its text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from maxmargin.text import read_template
    >>> _ = Path("template").write_text("# Unigram\nU00:%x[0,0]\n\n# Bigram\nB\n")
    >>> read_template("template").transform([["a", "b"]])[0]
    [['U00:a'], ['U00:b']]
    """
    lines = [line for _, line in Lines(path, encoding) if line is not None]
    features = TemplateFeatures(template="\n".join(lines))
    try:
        return features.fit(None)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class TemplateRows(Sliced[list[list[str]]]):
    """The features of sentences by templates, made when they are asked for: of tokens, or of what is between two."""

    def __init__(
        self, templates: list[Template], sentences: Sequence[Iterable[Token]], *, between: bool = False
    ) -> None:
        self.all_templates, self.sentences, self.between = templates, sentences, between
        if between:
            self.templates = [template for template in templates if template.of_transitions and template.cells]
        else:
            self.templates = [template for template in templates if template.of_positions]

    def __len__(self) -> int:
        return len(self.sentences)

    def make_some(self, which: slice) -> Self:
        return type(self)(self.all_templates, self.sentences[which], between=self.between)

    def make_one(self, i: int) -> list[list[str]]:
        words, tags, *_ = split_tokens(self.sentences[i], i)
        columns = [words, *tags]
        for template in self.templates:
            if words and template.n_columns > len(columns):
                raise ValueError(
                    f"The template {template.line!r} asks for column {template.n_columns - 1}, but tokens of X[{i}] "
                    f"have {count_of(len(columns), 'column')}, counted from 0."
                )
        return [[template.name(columns, t) for template in self.templates] for t in range(self.between, len(words))]

    def look_up(self, columns: FeatureColumns) -> Iterator[list[list[int]]]:
        """The same with the columns of the names in their place."""
        for sentence in self:
            yield [columns.find(names) for names in sentence]

    def edge_features(self) -> TemplateRows | None:
        """The features of transitions, if there are templates for them."""
        rows = TemplateRows(self.all_templates, self.sentences, between=True)
        return None if self.between or not rows.templates else rows
