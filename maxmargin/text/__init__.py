"""What text needs: features of tokens, files of tagged sentences, and schemes of tags."""

from maxmargin import public_names

__all__, __getattr__, __dir__ = public_names.load_lazily(__name__)
