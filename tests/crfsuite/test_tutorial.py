"""The published tutorial of sklearn-crfsuite, with its imports changed, on sentences of the form of its corpus."""

from collections import Counter
from itertools import chain

import scipy.stats
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV

import maxmargin.crfsuite as sklearn_crfsuite
from maxmargin.crfsuite import metrics

NAMES = {"LOC": ["Melbourne", "Madrid", "Nueva York"], "PER": ["Ana", "Juan Carlos"], "ORG": ["EFE", "La Caixa"]}
PATTERNS = ["{LOC} ( Australia ) , 25 may ( {ORG} ) .", "{PER} vive en {LOC} .", "{ORG} informa desde {LOC} ."]


def sentences():
    """Tuples of a word, a part of speech and an entity tag."""
    found = []
    for k in range(24):
        sentence = []
        for word in PATTERNS[k % 3].split():
            kind = word.strip("{}") if word.startswith("{") else None
            words = NAMES[kind][(k // 3) % len(NAMES[kind])].split() if kind else [word]
            for t, part in enumerate(words):
                pos = "NP" if kind else "NC" if part.isalpha() else "Fc"
                sentence.append((part, pos, f"{'B' if t == 0 else 'I'}-{kind}" if kind else "O"))
        found.append(sentence)
    return found


def word2features(sent, i):
    word = sent[i][0]
    postag = sent[i][1]

    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": postag,
        "postag[:2]": postag[:2],
    }
    if i > 0:
        word1 = sent[i - 1][0]
        postag1 = sent[i - 1][1]
        features.update(
            {
                "-1:word.lower()": word1.lower(),
                "-1:word.istitle()": word1.istitle(),
                "-1:word.isupper()": word1.isupper(),
                "-1:postag": postag1,
                "-1:postag[:2]": postag1[:2],
            }
        )
    else:
        features["BOS"] = True

    if i < len(sent) - 1:
        word1 = sent[i + 1][0]
        postag1 = sent[i + 1][1]
        features.update(
            {
                "+1:word.lower()": word1.lower(),
                "+1:word.istitle()": word1.istitle(),
                "+1:word.isupper()": word1.isupper(),
                "+1:postag": postag1,
                "+1:postag[:2]": postag1[:2],
            }
        )
    else:
        features["EOS"] = True

    return features


def sent2features(sent):
    return [word2features(sent, i) for i in range(len(sent))]


def sent2labels(sent):
    return [label for _, _, label in sent]


def test_the_tutorial_runs(capsys):
    train_sents, test_sents = sentences()[:18], sentences()[18:]
    X_train = [sent2features(s) for s in train_sents]
    y_train = [sent2labels(s) for s in train_sents]
    X_test = [sent2features(s) for s in test_sents]
    y_test = [sent2labels(s) for s in test_sents]

    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)

    labels = list(crf.classes_)
    labels.remove("O")
    assert sorted(labels) == ["B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER"]

    y_pred = crf.predict(X_test)
    assert metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels) > 0.9

    sorted_labels = sorted(labels, key=lambda name: (name[1:], name[0]))
    report = metrics.flat_classification_report(y_test, y_pred, labels=sorted_labels, digits=3)
    assert "I-PER" in report

    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=20, all_possible_transitions=True)
    params_space = {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)}
    f1_scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels)
    rs = RandomizedSearchCV(crf, params_space, cv=3, verbose=1, n_jobs=1, n_iter=2, scoring=f1_scorer, random_state=0)
    rs.fit(X_train, y_train)
    assert {*rs.best_params_} == {"c1", "c2"}
    assert rs.best_score_ > 0.5
    assert len(rs.cv_results_["mean_test_score"]) == 2

    assert 1_000 < rs.best_estimator_.size_ < 100_000

    crf = rs.best_estimator_
    y_pred = crf.predict(X_test)
    assert len([*chain.from_iterable(y_pred)]) == sum(map(len, y_test))

    def print_transitions(trans_features):
        for (label_from, label_to), weight in trans_features:
            print(f"{label_from:6} -> {label_to:7} {weight:0.6f}")

    print_transitions(Counter(crf.transition_features_).most_common(20))
    print_transitions(Counter(crf.transition_features_).most_common()[-20:])
    assert "B-LOC  -> I-LOC" in capsys.readouterr().out

    def print_state_features(state_features):
        for (attr, label), weight in state_features:
            print(f"{weight:0.6f} {label:8} {attr}")

    print_state_features(Counter(crf.state_features_).most_common(30))
    print_state_features(Counter(crf.state_features_).most_common()[-30:])
    assert "word.lower():" in capsys.readouterr().out
