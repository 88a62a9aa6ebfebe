"""Damaged and hostile files: a model or one clear error, never a crash, an import or much memory.

MAXMARGIN_FUZZ is the number of files of each kind.
"""

import builtins
import copy
import json
import os
import random
import tracemalloc
import zlib
from dataclasses import replace

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, DeformableSVM, GraphSVM, MultiLabelSVM, Tagger, TreeSVM
from maxmargin.encode.inputs.file_guard import check_encoder
from maxmargin.encode.names.vocabulary import Vocabulary
from maxmargin.persist.container import ALIGNMENT, MAGIC, PREFIX, VERSION
from maxmargin.runtime import interpreted
from maxmargin.text import Layout, WindowFeatures
from tests.small import make

pytestmark = pytest.mark.usefixtures("interpreted_loops")

N_FILES = int(os.environ.get("MAXMARGIN_FUZZ", "600"))
MOST_MEMORY = 20_000_000
ODD: list = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    10**30,
    0.5,
    1e308,
    "",
    "x",
    "os.system",
    "\udc80",
    [],
    {},
    [[]],
    [0, 0],
    [2**62],
    [2**31, 2**31, 2**31],
    {"array": 0},
    {"array": 10**9},
    {"array": "x"},
    {"view": [0, 0, [1]]},
    {"view": [0, -1, [2**40]]},
    {"dict": [[[], 1]]},
    {"tuple": [1, {"float": "nan"}]},
    {"set": [[]]},
    {"float": "x"},
    {"dtype": "O"},
    {"dtype": "<f4"},
    {"type": "object"},
    {"given": "run"},
    {"objects": [[2**40], []]},
    {"scalar": 0},
    {"object": ["Status", {"name": "X"}]},
    {"object": ["Vocabulary", {"names": ["a", "a"], "n_hashed": None}]},
    {"object": ["os.system", {"command": "true"}]},
    {"object": ["Pairs", {"start": {"array": 0}, "labels": {"array": 1}}]},
    {"object": ["ChainSVM", {}]},
    {"object": 5},
    {"object": [["ChainSVM"], {}]},
    {"a": 1, "b": 2},
    {"__class__": "x"},
    "|O",
    "<f4",
    "<U1000000000",
    "<U100000000",
    "O8",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    with interpreted():
        return make_files(tmp_path_factory.mktemp("models"))


def make_files(folder):
    """Files of models of several kinds, with examples that they can predict."""
    names = [[["a", "b"], ["c"]], [["b"], ["c", "a"]]]
    named = ChainCRF(max_passes=3, only_observed=True, constraints="bio").fit(names, [["B-X", "I-X"], ["O", "O"]])
    cases, found = [(named, names)], []
    for cls in (ChainCRF, DeformableSVM, GraphSVM, MultiLabelSVM, TreeSVM):
        model, X, y, _ = make(cls.__name__)
        cases.append((model.set_params(max_passes=3).fit(X, y), X))
    for k, (model, X) in enumerate(cases):
        model.save(folder / f"{k}.model")
        found.append(((folder / f"{k}.model").read_bytes(), X))
    return found


def opened(whole):
    """The JSON text of a file, and the bytes of its arrays."""
    length = PREFIX.unpack(whole[: PREFIX.size])[3]
    start = PREFIX.size + length
    return json.loads(whole[PREFIX.size : start]), whole[start + -start % ALIGNMENT :]


def closed(document, arrays):
    """A file of these, with the right lengths and checksums."""
    text = json.dumps(document).encode()
    gap = bytes(-(PREFIX.size + len(text)) % ALIGNMENT)
    size = PREFIX.size + len(text) + len(gap) + len(arrays)
    return PREFIX.pack(MAGIC, VERSION, zlib.crc32(text), len(text), size) + text + gap + arrays


def meet(path, content, X):
    """Load a file and predict with the model, if it is one; return whether it was."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        model = maxmargin.load(path)
    except ValueError as error:
        assert str(error).startswith(f"{str(path)!r} cannot be loaded: ")  # noqa: PT017
        return False
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MOST_MEMORY
    try:
        model.predict(X)
    except IndexError:
        raise  # a loop would have left its arrays
    except Exception:
        return True
    return True


@pytest.fixture
def guarded(monkeypatch):
    """Nothing may be run."""

    def refuse(*arguments, **_):
        raise AssertionError(f"a file ran something: {arguments}")

    for module, name in ((os, "system"), (builtins, "eval"), (builtins, "exec"), (os, "popen")):
        monkeypatch.setattr(module, name, refuse)


@pytest.mark.usefixtures("guarded")
def test_damaged_files(files, tmp_path):
    rng = random.Random(0)
    for _ in range(N_FILES):
        whole, X = rng.choice(files)
        content = bytearray(whole)
        damage = rng.randrange(3)
        if damage == 0:
            del content[rng.randrange(len(content)) :]
        elif damage == 1:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        else:
            at, size = rng.randrange(len(content)), rng.randrange(1, 60)
            content[at : at + rng.randrange(60)] = rng.randbytes(size)
        was_loaded = meet(tmp_path / "x", bytes(content), X)
        if was_loaded:  # only padding is covered by no checksum
            document, arrays = opened(whole)
            assert opened(bytes(content))[0] == document
            assert len(opened(bytes(content))[1]) == len(arrays)


def places(node, path=()):
    """The paths to all nodes of a JSON text."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@pytest.mark.usefixtures("guarded")
def test_hostile_text(files, tmp_path):
    rng = random.Random(1)
    documents = [(*opened(whole), X) for whole, X in files]
    paths = [[*places(document)][1:] for document, _, _ in documents]
    n_loaded = 0
    for _ in range(N_FILES):
        k = rng.randrange(len(documents))
        document, arrays, X = documents[k]
        edited = copy.deepcopy(document)
        for _ in range(rng.randrange(1, 3)):
            *way, key = rng.choice(paths[k])
            node = edited
            try:
                for step in way:
                    node = node[step]
                if rng.random() < 0.2:
                    del node[key]
                else:
                    node[key] = copy.deepcopy(rng.choice(ODD))
            except (KeyError, IndexError, TypeError):
                continue  # the first edit has taken away the place of the second
        n_loaded += meet(tmp_path / "x", closed(edited, arrays), X)
    assert n_loaded < N_FILES / 2


@pytest.mark.usefixtures("guarded")
def test_hostile_arrays(files, tmp_path):
    rng = random.Random(2)
    documents = [(*opened(whole), X) for whole, X in files]
    for _ in range(N_FILES):
        document, arrays, X = rng.choice(documents)
        edited, content = copy.deepcopy(document), bytearray(arrays)
        entry = rng.choice(edited["arrays"])
        at, end = entry["at"], entry["at"] + entry["length"]
        if end > at:
            for _ in range(rng.randrange(1, 4)):
                content[rng.randrange(at, end)] = rng.choice([0, 1, 2, 127, 128, 255])
        entry["check"] = zlib.crc32(content[at:end])
        meet(tmp_path / "x", closed(edited, bytes(content)), X)


def entry(content, **changes):
    block = {
        "dtype": "<f4",
        "shape": [len(content) // 4],
        "at": 0,
        "length": len(content),
        "check": zlib.crc32(content),
    }
    return {**block, **changes}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (entry(bytes(64), shape=[2**40]), "other bytes than its type and shape say"),
        (entry(bytes(64), shape=[2**40], packed=True), "other bytes than its type and shape say"),
        (entry(bytes(64), shape=[-16]), "a type or shape that cannot be"),
        (entry(bytes(64), shape=[2**31] * 3), "a type or shape that cannot be|other bytes"),
        (entry(bytes(64), shape=[1] * 40 + [16]), "a type or shape that cannot be"),
        (entry(bytes(64), dtype="|O"), "a type or shape that cannot be"),
        (entry(bytes(64), dtype="<U0"), "a type or shape that cannot be"),
        (entry(bytes(64), dtype="(2,2)<f4"), "a type or shape that cannot be"),
        (entry(b"\xff" * 64, dtype="<U16", shape=[1]), "array 0 has other bytes"),
        (entry(b"\xff" * 64, dtype="|b1", shape=[64]), "array 0 has other bytes"),
        (entry(bytes(64), at=64), "not within the file"),
        (entry(bytes(64), length=2**61), "not within the file"),
        (entry(bytes(60), at=3, shape=[15]), "not at a place of its own"),
        ({}, "a type or shape that cannot be"),
        (None, "a type or shape that cannot be"),
    ],
)
def test_arrays_that_cannot_be(table, reason, tmp_path):
    path = tmp_path / "x"
    for content in (bytes(64), b"\xff" * 64):  # the checksums are of one of them
        path.write_bytes(closed({"arrays": [table], "content": {"array": 0}}, content))
        with pytest.raises(ValueError, match=f"{reason}|the checksum of array 0 is wrong"):
            maxmargin.load(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "NaN", "1" * 10_000, '{"arrays": []}', "[]", '{"arrays": {}, "content": 1}', ""]
)
def test_texts_that_cannot_be(text, tmp_path):
    path, encoded = tmp_path / "x", text.encode()
    prefix = PREFIX.pack(MAGIC, VERSION, zlib.crc32(encoded), len(encoded), PREFIX.size + len(encoded))
    path.write_bytes(prefix + encoded)
    with pytest.raises(ValueError, match="cannot be loaded: its text"):
        maxmargin.load(path)


def test_arrays_that_share_a_place(tmp_path):
    """1 MB, of which each of many arrays would make 64."""
    path, content = tmp_path / "x", bytes(2**20)
    table = [entry(content, dtype="<f8", shape=[8 * len(content)], packed=True)] * 20
    path.write_bytes(closed({"arrays": table, "content": [{"array": k} for k in range(20)]}, content))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="array 1 is not at a place of its own"):
            maxmargin.load(path)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


ALIKE = [k * (2**61 - 1) for k in range(1, 2000)]  # all of them have the hash 0


@pytest.mark.parametrize("node", [{"set": ALIKE}, {"frozenset": ALIKE}, {"dict": [[k, 0] for k in ALIKE]}])
def test_hashes_that_collide(node, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(closed({"arrays": [], "content": node}, b""))
    with pytest.raises(ValueError, match="made to take long"):
        maxmargin.load(path)


def edited(node, key, value):
    """A JSON text with another value of a key, wherever it is."""
    if isinstance(node, dict):
        return {k: value if k == key else edited(inner, key, value) for k, inner in node.items()}
    return [edited(inner, key, value) for inner in node] if isinstance(node, list) else node


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("window", 10**6, "window must be an integer, from 0 to 100"),
        ("word_ngrams", 10**6, "word_ngrams must be an integer, from 1 to 100"),
        ("n_jobs", 10**6, "n_jobs must be None or a non-zero integer of at most 1024"),
        ("encoding", "zlib", "encoding must be the name of an encoding of texts, not 'zlib'"),
    ],
)
def test_arguments_that_ask_for_too_much(key, value, reason, tmp_path):
    path = tmp_path / "x"
    model = ChainCRF(max_passes=1)
    Tagger(model=model, features=WindowFeatures(), layout=Layout()).fit([["a", "b"]], [["x", "y"]]).save(path)
    document, arrays = opened(path.read_bytes())
    path.write_bytes(closed(edited(document, key, value), arrays))
    with pytest.raises(ValueError, match=f"cannot be loaded: .*{reason}"):
        maxmargin.load(path)


def test_claims_of_encoders_are_checked():
    """Each of these would have loops read beyond their arrays."""
    names = [[["a", "b"], ["c"]], [["b"], ["c", "a"]]]
    model = ChainCRF(max_passes=1, only_observed=True).fit(names, [["x", "y"], ["z", "x"]])
    encoder, w = model._encoder, model._w
    check_encoder(encoder, w)
    pairs = encoder.node_pairs
    broken = {
        "vocabulary": Vocabulary(["a", "b"]),
        "node_pairs": pairs._replace(labels=pairs.labels + 1),
        "edge_pairs": None,
        "penalty": encoder.penalty[:1],
        "end_penalty": encoder.end_penalty - 1,
        "classes": encoder.classes[:2],
        "n_features_in": 7,
        "has_bias": 2,
        "dtype": np.dtype("int32"),
    }
    for name, value in broken.items():
        with pytest.raises(ValueError, match=r"is not as it must be|there are not"):
            check_encoder(replace(encoder, **{name: value}), w)
    for bad in (w[1:], w.astype(int), np.full(w.size, np.nan), None, w.reshape(1, -1)):
        with pytest.raises(ValueError, match="weights"):
            check_encoder(encoder, bad)
