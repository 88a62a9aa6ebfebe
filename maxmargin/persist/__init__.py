"""Models on disk: one file of arrays and JSON, in which nothing can be run."""

from __future__ import annotations

import os
import sys
from typing import Any, BinaryIO

from maxmargin.persist import container
from maxmargin.persist.container import Broken
from maxmargin.persist.files import Location, check_writable, replacing
from maxmargin.persist.registry import register
from maxmargin.persist.values import Reader, Writer

__all__ = ["Location", "check_writable", "load", "register", "replacing", "save"]


def save(model: object, path: Location) -> None:
    """Write a model to a file, from which `load` makes it again.

    The file is written beside the old one, if there is one, and then takes its place: it is there as a whole or not at
    all. It holds constructor arguments, weights without zeros, what else predictions need (of features by name, with
    `only_observed`, those that have weights), and `trace_`, `status_` and `certificate_`, but no training data. What
    cannot be saved, such as a function given as `scoring`, or the class of a `StructuredSVM`, is found before anything
    is written.

    Parameters
    ----------
    model
        A model of the library, fitted or not, a scikit-learn ``Pipeline`` of those and others that can be saved, or an
        object of a class given to `maxmargin.register`.
    path
        Where; what is there is replaced.

    Examples
    --------
    >>> import maxmargin
    >>> from maxmargin import ChainCRF
    >>> model = ChainCRF().fit([[["the"], ["dog"]]], [["DET", "NOUN"]])
    >>> model.save("tagger.model")  # or maxmargin.save(model, "tagger.model")
    >>> maxmargin.load("tagger.model").predict([[["dog"]]])[0].tolist()
    ['NOUN']
    """
    if "sklearn.pipeline" in sys.modules:
        from maxmargin.persist import pipelines  # noqa: F401  (registers them)
    writer = Writer()
    content = writer(model, "The model" if not hasattr(type(model), "save") else type(model).__name__)
    container.write(path, content, writer.arrays)


def load(path: Location, *, mmap: bool = False) -> Any:
    """Read a model that `save` has written.

    Nothing in a file is ever run, so that it may come from strangers.

    Parameters
    ----------
    path
        The file.
    mmap
        Whether weights are mapped into memory, not read, so that processes that load the same file share them (those
        with many zeros are unpacked all the same). While the model is used, the file may then only be replaced by
        another one, as `save` does it. One that is written over in place changes predictions, and one that is cut short
        ends the process.

    Returns
    -------
    the model, with the same arguments, weights and predictions. With `warm_start`, a later `fit` begins at the weights,
    as dual points are not saved: solvers that keep one, such as "bcfw", begin afresh

    Raises
    ------
    ValueError
        One sentence that names the file and what is wrong, if it is no such file, truncated, corrupted, or written by a
        newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> from maxmargin import MulticlassSVM, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "any.model")
    ...     save(MulticlassSVM().fit([[0.0], [1.0]], ["a", "b"]), path)
    ...     model = load(path)
    >>> model.predict([[0.9]])
    array(['b'], dtype='<U1')
    """
    with open(path, "rb") as file:
        return load_open(file, path, mmap=mmap)


def load_open(file: BinaryIO, path: Location, *, mmap: bool = False) -> Any:
    """As `load`, from a file that is open: the same one, even if another has taken its place."""
    file.seek(0)
    try:
        content, arrays = container.read(file, maps=mmap)
        return Reader(arrays)(content)
    except Broken as error:
        reason, cause = str(error), None
    except Exception as error:  # whatever a constructor makes of what no model would hold
        reason, cause = f"what it holds is no model ({type(error).__name__}: {error})", error
    raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {reason}.") from cause
