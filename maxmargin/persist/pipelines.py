"""scikit-learn's pipelines in saved models: of steps that can be saved themselves."""

from __future__ import annotations

from sklearn.pipeline import Pipeline

from maxmargin.persist.registry import register

register(Pipeline, name="Pipeline")
