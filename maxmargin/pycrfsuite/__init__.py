"""python-crfsuite's interface: change the import, and its code runs.

``import maxmargin.pycrfsuite as pycrfsuite``, or ``from maxmargin.pycrfsuite import Trainer, Tagger, ItemSequence``.
"""

from maxmargin.pycrfsuite.crf_tagger import ParsedDump, Tagger
from maxmargin.pycrfsuite.crf_trainer import Trainer
from maxmargin.pycrfsuite.item_sequence import ItemSequence
from maxmargin.pycrfsuite.model_files import read_crfsuite

__all__ = ["ItemSequence", "ParsedDump", "Tagger", "Trainer", "read_crfsuite"]
