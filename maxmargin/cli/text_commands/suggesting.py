"""`maxmargin suggest`: the sentences that a tagger is least sure of, to be tagged by people next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from maxmargin.cli.common import in_batches, load_tagger, print_json, read_files, same_tokens, show
from maxmargin.tagger.word_tagger import Tagger
from maxmargin.text.document_tags import word_of
from maxmargin.text.token_features.tokens import Token


def run_suggest(
    model: Path, given: list[Path], format: str | None, encoding: str | None, *, n: int, as_json: bool
) -> None:
    """Show the sentences that a tagger is least sure of, each once."""
    tagger = load_tagger(model)
    document = read_files(given, tagger.layout, format=format, encoding=encoding, needs_tags=False)
    same_tokens(document, tagger)
    sure = [*in_batches(document.X, lambda X: tagger.confidence(X).tolist())]
    words = [[word_of(token) for token in tokens] for tokens in document.X]
    first = {tuple(row): i for i, row in reversed([*enumerate(words)]) if row}
    chosen = sorted(first.values(), key=lambda i: (sure[i], i))[:n]
    rows = [
        {
            "confidence": sure[i],
            "where": document.where(i),
            "words": words[i],
            **_describe(tagger, document.X[i], words[i]),
        }
        for i in chosen
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        show(f"{row['confidence']:.4f}  {row['where']}\n        {row['tagged']}")


def _describe(tagger: Tagger, tokens: Sequence[Token], words: list[str]) -> dict[str, object]:
    """What a tagger makes of a sentence: its tags, and its words with entities in brackets, or with their tags."""
    (tags,) = tagger.predict([tokens])
    if tagger.scheme_ is None:
        return {"tags": tags, "tagged": " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))}
    shown = [*words]
    for start, end, type_, p in tagger.predict_entities([tokens])[0]:
        shown[start] = f"[{shown[start]}"
        shown[end - 1] += f"]{type_} {p:.2f}"
    return {"tags": tags, "tagged": " ".join(shown)}
