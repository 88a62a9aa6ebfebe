"""The scorers of sklearn-crfsuite, for `GridSearchCV` and others."""

from sklearn.metrics import make_scorer

from maxmargin.crfsuite.metrics import flat_accuracy_score, sequence_accuracy_score

flat_accuracy = make_scorer(flat_accuracy_score)
sequence_accuracy = make_scorer(sequence_accuracy_score)
