"""What models of sequences have learned, and why a position got its label."""

from maxmargin.inspection.explanations import Contribution, Explanation, explain, explain_all
from maxmargin.inspection.strongest_weights import Weight, strongest_by_label, strongest_features, strongest_transitions

__all__ = [
    "Contribution",
    "Explanation",
    "Weight",
    "explain",
    "explain_all",
    "strongest_by_label",
    "strongest_features",
    "strongest_transitions",
]
