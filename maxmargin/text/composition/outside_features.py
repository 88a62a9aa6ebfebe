"""What is known of words from outside, without features of the words themselves."""

from __future__ import annotations

from maxmargin.parameters import has_parameters
from maxmargin.persist.registry import register
from maxmargin.text.token_features.document_words import DocumentWords
from maxmargin.text.token_features.sources import ListedNames
from maxmargin.text.token_features.windows import WindowFeatures
from maxmargin.text.token_features.word_properties import (
    CharacterNgrams,
    MatchedPatterns,
    NeighbourAffixes,
    WordClasses,
)


@register
@has_parameters
class OutsideFeatures(WindowFeatures):
    """What `WindowFeatures` have besides words, their neighbours and tags: what is known of them from outside.

    Lists of names, classes, vectors, patterns, spellings elsewhere, and parts of words, where they are asked for: to
    stand beside features that others say, such as those of a template.

    Examples
    --------
    >>> from maxmargin.text import FeatureSources, OutsideFeatures, TemplateFeatures
    >>> outside = OutsideFeatures(window=1, classes={"class": {"the": "DET"}})
    >>> features = FeatureSources(sources=[TemplateFeatures(template="U00:%x[0,0]"), outside])
    >>> features.transform([["the", "dog"]])[0]
    [['U00:the', 'class=DET'], ['U00:dog', 'class[-1]=DET']]
    """

    sources = (ListedNames, NeighbourAffixes, CharacterNgrams, MatchedPatterns, WordClasses, DocumentWords)
