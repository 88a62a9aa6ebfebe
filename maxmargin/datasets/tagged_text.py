"""Tagged sentences in column files: one token per line, a blank line between sentences."""

from __future__ import annotations

from pathlib import Path

from maxmargin.datasets.data_files import Dataset, find_file
from maxmargin.text import read_columns


def load_conll2000(folder: str | Path | None = None) -> Dataset:
    r"""Read the text chunking data of CoNLL-2000: 8,936 training and 2,012 test sentences, 22 tags.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``conll2000/train.txt`` and ``conll2000/test.txt``, by default that of the environment
        variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of sentences, lists of pairs of a word and its part of speech; y: lists of lists of chunk tags.

    References
    ----------
    Tjong Kim Sang, Buchholz (2000), Introduction to the CoNLL-2000 shared task: chunking,
    https://www.clips.uantwerpen.be/conll2000/chunking/.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.datasets import load_conll2000
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "conll2000").mkdir()
    ...     for part in "train", "test":
    ...         _ = pathlib.Path(folder, "conll2000", f"{part}.txt").write_text("He PRP B-NP\nran VBD B-VP\n\n")
    ...     chunks = load_conll2000(folder)
    >>> chunks.X_train, chunks.y_train
    ([[('He', 'PRP'), ('ran', 'VBD')]], [['B-NP', 'B-VP']])
    """
    train, test = (read_columns(find_file(f"conll2000/{part}.txt", folder)) for part in ("train", "test"))
    return Dataset(*train, *test)


def load_conll2003(folder: str | Path | None = None) -> Dataset:
    r"""Read the named entities of CoNLL-2003, English: 14,041 training, 3,250 development and 3,453 test sentences.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``conll2003/eng.train``, ``eng.testa`` and ``eng.testb``, or ``conll2003/train.txt``,
        ``valid.txt`` and ``test.txt``, by default that of the environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of sentences, lists of triples of a word, its part of speech and its chunk tag; y: lists of lists of
        entity tags as they are in the files, in the scheme IOB1 where these are the original ones:
        `maxmargin.text.convert_tags` makes others of them.

    References
    ----------
    Tjong Kim Sang, De Meulder (2003), Introduction to the CoNLL-2003 shared task: language-independent named entity
    recognition, https://www.clips.uantwerpen.be/conll2003/ner/.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.datasets import load_conll2003
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "conll2003").mkdir()
    ...     for name in "eng.train", "eng.testa", "eng.testb":
    ...         path = pathlib.Path(folder, "conll2003", name)
    ...         _ = path.write_text("-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n\n")
    ...     news = load_conll2003(folder)
    >>> news.X_train, news.y_train
    ([[('EU', 'NNP', 'I-NP')]], [['I-ORG']])
    """
    names = ("eng.train", "train.txt"), ("eng.testb", "test.txt"), ("eng.testa", "valid.txt")
    train, test, dev = (read_columns(find_file([f"conll2003/{name}" for name in both], folder)) for both in names)
    return Dataset(*train, *test, *dev)


def load_wnut17(folder: str | Path | None = None) -> Dataset:
    r"""Read the emerging entities of WNUT-17: 3,394 training, 1,009 development and 1,287 test sentences, 13 tags.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``wnut17/wnut17train.conll``, ``wnut17/emerging.dev.conll`` and
        ``wnut17/emerging.test.annotated``, by default that of the environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of sentences, lists of words; y: lists of lists of entity tags.

    References
    ----------
    Derczynski, Nichols, van Erp, Limsopatham (2017), Results of the WNUT2017 shared task on novel and emerging entity
    recognition, https://github.com/leondz/emerging_entities_17.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.datasets import load_wnut17
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "wnut17").mkdir()
    ...     for name in "wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated":
    ...         _ = pathlib.Path(folder, "wnut17", name).write_text("in\tO\nParis\tB-location\n\n")
    ...     entities = load_wnut17(folder)
    >>> entities.X_dev, entities.y_dev
    ([['in', 'Paris']], [['O', 'B-location']])
    """
    names = "wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"
    train, dev, test = (read_columns(find_file(f"wnut17/{name}", folder), separator="\t") for name in names)
    return Dataset(*train, *test, *dev)
