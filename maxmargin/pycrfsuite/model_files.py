"""Models that CRFsuite has written: a header, features, and databases of the names of labels and attributes.

    header      "lCRF", size, type "FOMC", version, and the places of what follows             48 bytes
    "FEAT"      size, number; of each feature: kind (0: attribute and label, 1: two labels), both of them, its weight
    "CQDB"      of labels, then of attributes: size, flag, order of bytes, number and place of the places of names, by
                number; a name is its number, its length with the zero at its end, and its bytes

All of it is little-endian. What else there is in a file serves CRFsuite to look things up.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.crfsuite.algorithms import FrequentCRF, TrainingLog
from maxmargin.crfsuite.crf import CRF
from maxmargin.encode.chain_encoder import ChainEncoder
from maxmargin.encode.names.vocabulary import Vocabulary
from maxmargin.features.pairs import Pairs
from maxmargin.persist import Location
from maxmargin.trace import NO_WEIGHTS, Certificate, Status, Trace

MAGIC, KIND, VERSION = b"lCRF", b"FOMC", 100
HEADER, CHUNK, DATABASE = struct.Struct("<4sI4s9I"), struct.Struct("<4s2I"), struct.Struct("<4s5I")
SIZES = "size", "type", "version", "num_features", "num_labels", "num_attrs"
PLACES = "off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs"
BYTE_ORDER = 0x62445371
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
STATE, TRANSITION = 0, 1


class BrokenModel(ValueError):
    """What is wrong with a file, as the end of a sentence."""


class CrfsuiteModel(NamedTuple):
    """What a file of CRFsuite holds."""

    header: dict[str, str]
    labels: list[str]
    attributes: list[str]
    features: np.ndarray  # of the type FEATURE


def read_crfsuite(path: Location) -> CRF:
    """The model in a file that CRFsuite, python-crfsuite or sklearn-crfsuite have written, to predict with.

    Parameters
    ----------
    path
        The file, mostly one whose name ends with .crfsuite.

    Returns
    -------
    CRF
        Its `model_` is a `ChainCRF` with the weights of the file.

    Raises
    ------
    ValueError
        One sentence that names the file and what is wrong, if it is truncated, or another one.
    """
    with open(path, "rb") as file:
        return model_of(parse(file.read(), os.fspath(path)))


def parse(content: bytes, name: str) -> CrfsuiteModel:
    """What the bytes of a file of that name hold."""
    try:
        return _parse(content)
    except BrokenModel as error:
        raise ValueError(f"{name!r} is no model of CRFsuite that can be read: {error}.") from None


def _parse(content: bytes) -> CrfsuiteModel:
    if content[:4] != MAGIC:
        raise BrokenModel("it does not begin with lCRF")
    if len(content) < HEADER.size:
        raise BrokenModel(f"it is truncated, after {len(content)} bytes")
    magic, *values = HEADER.unpack_from(content)
    size, kind, version, _, n_labels, n_attributes, at_features, at_labels, at_attributes, *_ = values
    if kind != KIND or version != VERSION:
        raise BrokenModel(f"it is of the type {kind!r} and the version {version}, not of {KIND!r} and {VERSION}")
    if size != len(content):
        raise BrokenModel(f"it is truncated, or damaged: {len(content)} of {size} bytes are there")
    labels, attributes = _names(content, at_labels, n_labels), _names(content, at_attributes, n_attributes)
    features = _features(content, at_features)
    sources = np.where(features["kind"] == STATE, n_attributes, n_labels)
    is_sane = (features["kind"] <= TRANSITION) & (features["source"] < sources) & (features["target"] < n_labels)
    if not (is_sane.all() and np.isfinite(features["weight"]).all()):
        raise BrokenModel("it has features of attributes or labels that are not there, or weights that are no numbers")
    header = dict(zip(SIZES, map(str, values), strict=False))
    header |= {name: f"0x{place:X}" for name, place in zip(PLACES, values[len(SIZES) :], strict=True)}
    header |= {"magic": magic.decode(), "type": kind.decode()}
    return CrfsuiteModel(header, labels, attributes, features)


def _features(content: bytes, at: int) -> np.ndarray:
    if at + CHUNK.size > len(content) or content[at : at + 4] != b"FEAT":
        raise BrokenModel("its features are not where its header says")
    _, _, count = CHUNK.unpack_from(content, at)
    if at + CHUNK.size + count * FEATURE.itemsize > len(content):
        raise BrokenModel(f"it has room for fewer features than {count}")
    return np.frombuffer(content, FEATURE, count, at + CHUNK.size)


def _names(content: bytes, at: int, n_names: int) -> list[str]:
    if at + DATABASE.size > len(content) or content[at : at + 4] != b"CQDB":
        raise BrokenModel("its names are not where its header says")
    _, _, _, order, count, places = DATABASE.unpack_from(content, at)
    if order != BYTE_ORDER or count < n_names or at + places + 4 * count > len(content):
        raise BrokenModel("its names are damaged")
    names: list[str] = []
    for place in np.frombuffer(content, "<u4", n_names, at + places).tolist():
        begin = at + place + 8
        if begin > len(content):
            raise BrokenModel("its names are damaged")
        number, length = struct.unpack_from("<2I", content, begin - 8)
        name = content[begin : begin + length]
        if number != len(names) or len(name) != length or not name.endswith(b"\0"):
            raise BrokenModel("its names are damaged")
        names.append(name[:-1].decode("utf-8", "replace"))
    if len({*names}) < len(names):
        raise BrokenModel("it has a name twice")
    return names


def model_of(found: CrfsuiteModel) -> CRF:
    """The model with the weights of a file."""
    order = np.argsort(found.labels)
    classes, place = np.array(found.labels)[order], np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    features, n_labels = found.features, len(classes)
    is_state = features["kind"] == STATE
    states, transitions = features[is_state], features[~is_state]
    node_pairs, node_weights = _sort(
        states["source"], place[states["target"]], states["weight"], len(found.attributes), n_labels
    )
    pairs = place[transitions["source"]] * n_labels + place[transitions["target"]]
    edge_pairs, edge_weights = _sort(np.zeros(len(pairs), np.int64), pairs, transitions["weight"], 1, n_labels**2)
    encoder = ChainEncoder(
        n_features_in=len(found.attributes),
        dtype=np.dtype(np.float64),
        stores_sparse=True,
        has_bias=False,
        classes=classes,
        vocabulary=Vocabulary(found.attributes),
        node_pairs=node_pairs,
        edge_pairs=edge_pairs,
        penalty=np.zeros((n_labels, n_labels)),
        end_penalty=np.zeros((2, n_labels)),
    )
    model = FrequentCRF(fit_intercept=False, only_observed=True)
    model._set_weights(encoder, np.concatenate([node_weights, edge_weights]))
    nothing_proven = Certificate(NO_WEIGHTS, np.inf, -np.inf)
    vars(model).update(
        trace_=Trace(), status_=Status.ELSEWHERE, certificate_=nothing_proven, n_iter_=0, n_seen_=0, command_=None
    )
    crf = CRF()
    crf.model_, crf.training_log_, crf._labels = model, TrainingLog([]), [*found.labels]
    return crf


def _sort(
    sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, n_sources: int, n_targets: int
) -> tuple[Pairs, np.ndarray]:
    """Pairs in the order of a model, and their weights; those of a pair that is there twice are added."""
    numbers, which = np.unique(sources.astype(np.int64) * n_targets + targets, return_inverse=True)
    features, labels = np.divmod(numbers, n_targets)
    start = starts_of(np.bincount(features, minlength=n_sources))
    summed = np.bincount(which, weights, len(numbers)).astype(np.float64)
    return Pairs(start.astype(np.uint32), labels.astype(np.uint32)), summed


def is_crfsuite(content: Sequence[int]) -> bool:
    """Whether bytes are those of a file of CRFsuite."""
    return bytes(content[:4]) == MAGIC
