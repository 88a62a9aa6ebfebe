"""What a list of names is worth that is made of the entities to train on: left out, as it is, and cross-fit.

Fits end at the optimum: on WNUT-17, the pass at which held-out data would stop them changes F1 by more than lists do.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

FILES = {
    "wnut": ("wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"),
    "dutch": ("conll2002_dutch/train.txt", "conll2002_dutch/test.txt"),
}
WAYS = ("without", "as it is", "cross-fit")


def measure(dataset: str, kind: str) -> dict[str, float]:
    """F1 on test data by what is done with the lists, one per type."""
    import maxmargin
    from maxmargin.datasets.data_files import find_file
    from maxmargin.metrics import entity_f1
    from maxmargin.text import WindowFeatures, find_entities, read_columns

    (X, y), (X_test, y_test) = (read_columns(find_file(name, None)) for name in FILES[dataset])
    lists: dict[str, list[str]] = {}
    for words, entities in zip(X, find_entities(y), strict=True):
        for start, end, title in entities:
            lists.setdefault(title, []).append(" ".join(words[start:end]))
    found = {}
    for way in WAYS:
        features = WindowFeatures(gazetteers=None if way == "without" else lists)
        rows: Any = features.fit_transform(X, y) if way == "cross-fit" else features.transform(X)
        model = getattr(maxmargin, kind)(only_observed=True, constraints="bio", random_state=0)
        model.fit(rows, y)
        found[way] = entity_f1(y_test, model.predict(features.transform(X_test)))
    return found


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--datasets", {"nargs": "+", "choices": [*FILES], "default": [*FILES]}),
        ("--models", {"nargs": "+", "choices": ["ChainCRF", "ChainSVM"], "default": ["ChainCRF", "ChainSVM"]}),
    )
    figures, bars = {}, []
    for dataset in options.datasets:
        for kind in options.models:
            found = figures[f"{dataset}, {kind}"] = in_fresh_process(measure, dataset, kind)
            gain = 100 * (found["cross-fit"] - found["without"])
            bars.append(Bar(f"{dataset}, {kind}: cross-fit, the list costs nothing", f"{gain:+.2f}", gain >= 0))
    rows = [[name, *(f"{100 * found[way]:.2f}" for way in WAYS)] for name, found in figures.items()]
    print_table("F1 on test data, by what is done with a list of the training entities", ["", *WAYS], rows)
    report(figures, bars, options.json)


if __name__ == "__main__":
    main()
