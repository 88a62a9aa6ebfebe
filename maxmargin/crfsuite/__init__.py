"""sklearn-crfsuite's interface: change the import, and its code runs.

``import maxmargin.crfsuite as sklearn_crfsuite``, or ``from maxmargin.crfsuite import CRF, metrics, scorers``.
"""

from maxmargin.crfsuite import metrics, scorers
from maxmargin.crfsuite.crf import CRF

__all__ = ["CRF", "metrics", "scorers"]
