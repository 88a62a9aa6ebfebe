"""Labelled data to try the library on: one set made on the spot, the others read from files."""

from __future__ import annotations

from maxmargin.datasets.alignment import SentencePair, load_word_alignment
from maxmargin.datasets.blood_cells import load_blood_cells
from maxmargin.datasets.data_files import Dataset
from maxmargin.datasets.digits import digit_words
from maxmargin.datasets.horses import load_horses
from maxmargin.datasets.lsp import load_lsp
from maxmargin.datasets.msrc import MSRC_CLASSES, load_msrc
from maxmargin.datasets.mulan import load_emotions, load_mulan, load_scene
from maxmargin.datasets.ocr import load_ocr
from maxmargin.datasets.tagged_text import load_conll2000, load_conll2003, load_wnut17
from maxmargin.datasets.voc import load_voc

__all__ = [
    "MSRC_CLASSES",
    "Dataset",
    "SentencePair",
    "digit_words",
    "load_blood_cells",
    "load_conll2000",
    "load_conll2003",
    "load_emotions",
    "load_horses",
    "load_lsp",
    "load_msrc",
    "load_mulan",
    "load_ocr",
    "load_scene",
    "load_voc",
    "load_wnut17",
    "load_word_alignment",
]
