"""Several labels per row: scenes in photographs and emotions in music, labels alone and together.

Every model is a scikit-learn estimator behind a `StandardScaler`; its C is chosen on each training part by subset
accuracy in three inner folds. Reported are, over five outer folds of all data, the subset accuracy (all labels of an
example right), the macro-averaged F1 and the Hamming loss (the share of wrong labels).

Usage: MAXMARGIN_DATA=... python examples/multilabel.py [--data scene emotions] [--quick]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import MultiLabelCRF, MultiLabelSVM
from maxmargin.datasets import load_emotions, load_scene

DATA = {"scene": load_scene, "emotions": load_emotions}
LOGISTIC = LogisticRegression(max_iter=2000)
MODELS = {
    "logistic regressions": MultiOutputClassifier(LOGISTIC),
    "ClassifierChain": ClassifierChain(LOGISTIC, order="random", random_state=0),
    "MultiLabelCRF, all pairs": MultiLabelCRF(graph="full"),
    "MultiLabelCRF, tree": MultiLabelCRF(graph="tree"),
    "MultiLabelCRF, no pairs": MultiLabelCRF(graph=None),
    "MultiLabelSVM, all pairs": MultiLabelSVM(graph="full", random_state=0),
    "MultiLabelSVM, tree": MultiLabelSVM(graph="tree", random_state=0),
    "MultiLabelSVM, no pairs": MultiLabelSVM(graph=None, random_state=0),
}


def tuned(model: Any, strengths: list[float]) -> GridSearchCV:
    """The model with its C chosen by cross-validation."""
    pipeline = make_pipeline(StandardScaler(), model)
    name = next(name for name in pipeline.get_params() if name.endswith("__C"))
    inner = KFold(3, shuffle=True, random_state=1)
    return GridSearchCV(pipeline, {name: strengths}, scoring="accuracy", cv=inner, error_score="raise")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=[*DATA], default=[*DATA])
    parser.add_argument("--quick", action="store_true", help="two outer folds and two values of C")
    arguments = parser.parse_args()
    strengths = [0.01, 0.1] if arguments.quick else [0.01, 0.03, 0.1, 0.3]
    outer = KFold(2 if arguments.quick else 5, shuffle=True, random_state=0)
    for name in arguments.data:
        data = DATA[name]()
        X, Y = np.vstack([data.X_train, data.X_test]), np.vstack([data.y_train, data.y_test])
        print(f"{name}: {len(X)} examples, {X.shape[1]} features, {Y.shape[1]} labels")
        print(f"{'model':28}{'subset accuracy':>18}{'macro-F1':>12}{'Hamming loss':>16}{'CPU s':>10}")
        for title, model in MODELS.items():
            began = time.process_time()
            P = cross_val_predict(tuned(model, strengths), X, Y, cv=outer)
            figures = f"{accuracy_score(Y, P):18.3f}{f1_score(Y, P, average='macro'):12.3f}{hamming_loss(Y, P):16.4f}"
            print(f"{title:28}{figures}{time.process_time() - began:10.1f}", flush=True)
        print()


if __name__ == "__main__":
    main()
