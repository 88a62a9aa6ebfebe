"""Quality of predictions: of boxes, labels, entities and trees, and of probabilities."""

from maxmargin import public_names

__all__, __getattr__, __dir__ = public_names.load_lazily(__name__)
