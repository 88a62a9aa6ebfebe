"""A folder of shards: a file of examples for each, and a manifest, which is written last."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.persist import container
from maxmargin.persist.container import PREFIX, Broken
from maxmargin.persist.files import Location, replacing
from maxmargin.persist.registry import register
from maxmargin.persist.values import Reader, TokenWriter
from maxmargin.text.corpus import Corpus
from maxmargin.version import __version__

VERSION = 2
READS = 1, 2
MANIFEST = "shards.json"


def _make_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> sp.csr_array:
    rows = sp.csr_array((data, indices, indptr), shape=shape)
    rows.check_format()
    return rows


def _take_apart(rows: sp.csr_array) -> dict[str, object]:
    rows = rows.tocsr()
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": tuple(map(int, rows.shape))}


for _cls in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix):
    register(_cls, get=_take_apart, make=_make_rows, name=f"scipy.{_cls.__name__}")
register(Corpus, get=lambda corpus: {"sentences": [*corpus], "documents": corpus.documents})


class ShardFolder:
    """A folder that is being written.

    Parameters
    ----------
    folder
        It must not exist, or be empty.
    """

    def __init__(self, folder: Location) -> None:
        self.path = Path(folder)
        self.existed = self.path.is_dir()
        if self.path.exists() and (not self.existed or any(self.path.iterdir())):
            raise FileExistsError(f"{str(folder)!r} must be a new folder, or an empty one, to write shards to.")
        self.path.mkdir(parents=True, exist_ok=True)
        self.shards: list[dict[str, Any]] = []

    def add(self, X: object, y: object, n_examples: int) -> None:
        """Write a shard."""
        writer, path = TokenWriter(), self.path / f"shard-{len(self.shards):05d}.data"
        content = writer({"X": X, "y": y}, f"Shard {len(self.shards)}")
        container.write(path, content, writer.arrays)
        self.shards.append({"file": path.name, "examples": n_examples, "begins": beginning_of(path)})

    def end(self, more: object = None) -> None:
        """Write the manifest: the folder holds shards from now on."""
        manifest = {"maxmargin shards": VERSION, "written by": __version__, "shards": self.shards, "more": more}
        with replacing(self.path / MANIFEST) as file:
            file.write(json.dumps(manifest, indent=1).encode())

    def remove(self) -> None:
        """Leave nothing behind."""
        for shard in self.path.glob("shard-*.data"):
            shard.unlink()
        (self.path / MANIFEST).unlink(missing_ok=True)
        if not self.existed:
            shutil.rmtree(self.path, ignore_errors=True)


def read_manifest(folder: Location) -> tuple[list[dict[str, Any]], Any]:
    """What is known of the shards in a folder, and what was said of all of them."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{str(folder)!r} holds no shards, or they were not written to their end.")
    try:
        manifest = json.loads(path.read_text("utf-8"))
        version, shards = manifest["maxmargin shards"], manifest["shards"]
        is_known = all(
            type(shard["file"]) is str
            and shard["file"] == os.path.basename(shard["file"])
            and type(shard["examples"]) is int
            and type(shard["begins"]) is str
            for shard in shards
        )
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{str(path)!r} is not a list of shards that was written by this library.") from None
    if version not in READS or not is_known or not shards:
        raise ValueError(
            f"The shards in {str(folder)!r} were written by another version of maxmargin, "
            f"{manifest.get('written by')}, in format {version}, and this one reads {VERSION}: write them again."
        )
    return shards, manifest.get("more")


def read_shard(folder: Location, shard: dict[str, Any]) -> tuple[object, object]:
    """X and y of a shard."""
    path = Path(folder) / shard["file"]
    try:
        if beginning_of(path) != shard["begins"]:
            raise Broken("it has changed since it was written")
        with open(path, "rb") as file:
            content, arrays = container.read(file)
            found = Reader(arrays)(content)
            return found["X"], found["y"]
    except (Broken, FileNotFoundError) as error:
        reason = "it is no longer there" if isinstance(error, OSError) else error
        raise ValueError(f"{str(path)!r} cannot be read: {reason}.") from None


def beginning_of(path: Path) -> str:
    """The first bytes of a file, which tell it from any other: in them are checksums of checksums of all the rest."""
    with open(path, "rb") as file:
        return file.read(PREFIX.size).hex()
