"""Runs hostile inputs: ``python -m tests.fuzz.child first last compiled``; a line per input, before and after."""

import json
import sys
import traceback
import warnings
from contextlib import nullcontext

import numpy as np
from sklearn.base import clone

from maxmargin import ProblemModel
from maxmargin.estimators.syntax.span_models import SpanModel
from maxmargin.runtime import interpreted
from tests.fuzz.certified import false_certificate
from tests.fuzz.hostile import attempt

REFUSALS = (TypeError, ValueError)
METHODS = [
    ("predict",),
    ("predict_certified",),
    ("predict_topk", 2),
    ("predict_marginals",),
    ("predict_proba",),
    ("decision_function",),
    ("sample", 3),
]


def outcome(seed: int) -> str:
    """What became of the input of a seed: "fitted", "refused", or a finding."""
    model, X, y, sample_weight, options, unseen, _ = attempt(seed)
    data = {name: value for name, value in options.items() if not name.endswith("_dev")}
    try:
        for _ in range(1 + model.warm_start):
            model.fit(X, y, sample_weight, **options)
    except (*REFUSALS, LookupError) as error:
        return "refused" if is_sentence(error) else f"not refused by a sentence: {error!r}"
    trace = model.trace_
    if not (np.isfinite(trace.primal).all() and not np.isnan(trace.dual).any() and np.isfinite(model._w).all()):
        return f"a trace or weights that are not finite, with status {model.status_.name}"
    if not np.isfinite(model.certificate_.primal) or np.isnan(model.certificate_.dual):
        return f"a certificate that is not finite, with status {model.status_.name}"
    exact = clone(model).set_params(tol=1e-6, max_passes=30, solver="auto", time_limit=5.0)
    try:
        with interpreted():
            reference = exact.fit(X, y, sample_weight, **data)
    except REFUSALS:
        reference = model
    with interpreted():
        problem = false_certificate(model, X, y, sample_weight, reference, **data)
    if problem:
        return f"a false certificate, {model.status_.name}: {problem}"
    for method, *arguments in METHODS:
        if hasattr(model, method):
            try:
                predicted = getattr(model, method)(unseen, *arguments)
            except REFUSALS as error:
                if not is_sentence(error):
                    return f"a message of {method} that is no sentence: {error!r}"
                continue
            if method in ("predict_marginals", "predict_proba") and not are_marginals(predicted, model):
                return f"marginals that are none: {predicted!r}"
            if method == "predict_certified" and not all(is_enclosed(found) for found in predicted):
                return f"bounds below the scores of outputs: {predicted!r}"
            if method == "decision_function" and any(np.isnan(values).any() for values in predicted):
                return f"max-marginals that are none: {predicted!r}"
    return "fitted"


def is_sentence(error: Exception) -> bool:
    """Whether an error says what is wrong in one sentence; scikit-learn and a user's class speak for themselves."""
    text, sources = str(error), [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    is_ours = isinstance(error, REFUSALS) and text.endswith(".") and "\n" not in text
    return is_ours or "sklearn" in sources[-1] or any(source.endswith("toy.py") for source in sources)


def is_enclosed(prediction) -> bool:
    """Whether an output has a finite score within its bound, and is the best one where that is said."""
    is_equal = np.isclose(prediction.score, prediction.bound, rtol=1e-3, atol=1e-3)
    return (
        np.isfinite(prediction.score) and prediction.score <= prediction.bound and (is_equal or not prediction.is_exact)
    )


def are_marginals(predicted, model) -> bool:
    """Whether probabilities are within [0, 1], and those of labels add up to 1; own parts may be any numbers."""
    if isinstance(model, ProblemModel):
        return all(np.isfinite(p).all() for p in predicted)
    is_of_spans = isinstance(model, SpanModel)  # of which a tree has some, with a label each
    add_up = np.ndim(getattr(model, "classes_", None)) == 1 and not is_of_spans  # nor do those of several labels
    if hasattr(model, "projective") or hasattr(model, "max_length"):  # of words: heads, places, and labels
        predicted = [np.reshape(p, (len(p), -1)) for p in predicted]
    return all(
        (np.asarray(p) >= -1e-6).all()
        and (np.asarray(p) <= 1 + 1e-4).all()
        and (not is_of_spans or (np.sum(p, axis=-1) <= 1 + 1e-4).all())
        and (not add_up or np.allclose(np.sum(p, axis=-1), 1, atol=1e-3))
        for p in predicted
    )


def main() -> None:
    """Try the seeds of a range."""
    first, last, is_compiled = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")
    for seed in range(first, last):
        print(json.dumps([seed, "begun"]), flush=True)
        try:
            with nullcontext() if is_compiled else interpreted():
                result = outcome(seed)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps([seed, result]), flush=True)


if __name__ == "__main__":
    main()
