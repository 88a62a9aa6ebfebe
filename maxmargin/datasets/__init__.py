"""Labelled sequences to try the library on: one set made on the spot, the others read from files."""

from __future__ import annotations

from maxmargin.datasets.base import Dataset
from maxmargin.datasets.blood_cells import load_blood_cells
from maxmargin.datasets.digits import digit_words
from maxmargin.datasets.ocr import load_ocr
from maxmargin.datasets.text import load_conll2000, load_wnut17

__all__ = ["Dataset", "digit_words", "load_blood_cells", "load_conll2000", "load_ocr", "load_wnut17"]
