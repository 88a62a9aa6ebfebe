"""A component of spaCy's pipelines: `nlp.add_pipe("maxmargin", config={"model": path})`; needs the extra `spacy`."""

try:
    import spacy  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('maxmargin.spacy needs spaCy: pip install "maxmargin[spacy]"') from error

from maxmargin.spacy.component import TaggerComponent, make_component

__all__ = ["TaggerComponent", "make_component"]
