"""`maxmargin inspect`: what a tagger has learned, and why a word got its tag."""

from __future__ import annotations

import math
from pathlib import Path

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from maxmargin.cli.common import load_tagger, print_json, read, same_tokens
from maxmargin.cli.terminal import Terminal
from maxmargin.inspection import strongest_features, strongest_transitions
from maxmargin.tagger.word_tagger import Tagger
from maxmargin.text.token_features.tokens import Token
from maxmargin.wording import count_of


def run_inspect(
    model: Path,
    source: Path | None,
    format: str | None,
    encoding: str | None,
    *,
    top: int,
    tag: str | None,
    sentence: int | None,
    word: int | None,
    rival: str | None,
    as_json: bool,
) -> None:
    """Show the strongest weights of a tagger or, of a sentence, why its words have their tags."""
    tagger = load_tagger(model)
    console = Terminal(soft_wrap=True)
    if source is None:
        if word is not None or rival is not None or sentence is not None:
            raise typer.BadParameter("--sentence, --word and --rival need a FILE of sentences.")
        _show_weights(tagger, tag, top, console, as_json)
        return
    if tag is not None:
        raise typer.BadParameter("--tag shows what was learned, without a FILE; with one, --rival is a tag to compare.")
    document = read(source, tagger.layout, format=format, encoding=encoding, needs_tags=False)
    same_tokens(document, tagger)
    sentence = sentence or 1
    if sentence > len(document.X):
        raise ValueError(f"{document.name} has {count_of(len(document.X), 'sentence')}, no sentence {sentence}.")
    tokens = document.X[sentence - 1]
    if word is None:
        _show_sentence(tagger, tokens, console, as_json)
        return
    if word > len(tokens):
        raise ValueError(
            f"{document.where(sentence - 1)}: the sentence has {count_of(len(tokens), 'word')}, no word {word}."
        )
    _show_word(tagger, tokens, word - 1, rival, top, console, as_json)


def _show_weights(tagger: Tagger, tag: str | None, top: int, console: Terminal, as_json: bool) -> None:
    model = tagger.model_
    tags = tagger.classes_.tolist() if tag is None else [tag]
    features = {label: strongest_features(model, label, top) for label in tags}
    transitions = strongest_transitions(model, 2 * top)
    if as_json:
        print_json(
            {
                "features": {str(label): [[w.of, w.weight] for w in found] for label, found in features.items()},
                "transitions": [[before, after, weight] for before, after, weight in transitions],
            }
        )
        return
    about = f"{type(model).__name__}, C = {model.C:g}, {model.n_features_in_:,} features, {len(tagger.classes_)} tags"
    console.print(f"{about}, {tagger.scheme_ or 'no scheme'}: {tagger.certificate_}")
    for label, found in features.items():
        console.print(_table(f"features of {label}", [(weight.weight, weight.of) for weight in found]))
    if tag is None:
        rows = [(weight, f"{before} -> {after}") for before, after, weight in transitions]
        console.print(_table("transitions", rows))


def _table(title: str, rows: list[tuple[float, str]]) -> Table:
    table = Table("weight", title, box=SIMPLE_HEAD)
    table.columns[0].justify = "right"
    for weight, name in rows:
        table.add_row(Text(f"{weight:+.4f}", "green" if weight > 0 else "red"), name)
    return table


def _word(token: Token) -> str:
    return token if isinstance(token, str) else " ".join(token)


def _finite(margin: float) -> float | None:
    """A margin as JSON knows it."""
    return margin if math.isfinite(margin) else None


def _show_sentence(tagger: Tagger, tokens: list[Token], console: Terminal, as_json: bool) -> None:
    found = [tagger.explain(tokens, t) for t in range(len(tokens))]
    if as_json:
        rows = [
            {"word": _word(token), "tag": e.label, "rival": e.rival, "margin": _finite(e.margin)}
            for token, e in zip(tokens, found, strict=True)
        ]
        print_json({"words": rows})
        return
    table = Table("", "word", "tag", "runner-up", "margin", "strongest reason", box=SIMPLE_HEAD)
    for t, (token, e) in enumerate(zip(tokens, found, strict=True), start=1):
        reason = max(e.contributions, key=lambda c: c.value, default=None)
        why = "" if reason is None else f"{reason.value:+.2f} {reason.of}"
        rival = ("none", "") if e.rival is None else (str(e.rival), f"{e.margin:.2f}")
        cells = (str(t), _word(token), str(e.label), *rival, why)
        table.add_row(*cells)
    console.print(table)


def _show_word(
    tagger: Tagger, tokens: list[Token], t: int, rival: str | None, top: int, console: Terminal, as_json: bool
) -> None:
    e = tagger.explain(tokens, t, rival)
    if as_json:
        found = {**e._asdict(), "margin": _finite(e.margin), "contributions": [c._asdict() for c in e.contributions]}
        print_json(found)
        return
    if e.rival is None:
        console.print(f"{_word(tokens[t])}: {e.label}; nothing else is allowed")
        return
    console.print(f"{_word(tokens[t])}: {e.label}, not {e.rival}, by a margin of {e.margin:.4f}")
    if e.rival_labelling[:t] + e.rival_labelling[t + 1 :] != e.labelling[:t] + e.labelling[t + 1 :]:
        console.print(f"With {e.rival}, the sentence would be tagged {' '.join(e.rival_labelling)}")
    table = Table("", "what", "word", box=SIMPLE_HEAD)
    table.columns[0].justify = "right"
    for c in e.contributions[:top]:
        table.add_row(Text(f"{c.value:+.4f}", "green" if c.value > 0 else "red"), c.of, _word(tokens[c.position]))
    rest = e.contributions[top:]
    if rest:
        table.add_row(f"{sum(c.value for c in rest):+.4f}", f"{len(rest)} others", "")
    console.print(table)
