"""Quality of predictions: of boxes, labels, entities and trees, and of probabilities."""

from maxmargin.metrics.attachment import las, uas
from maxmargin.metrics.calibration import (
    Reliability,
    expected_calibration_error,
    find_temperature,
    reliability,
    temper,
)
from maxmargin.metrics.entities import (
    EntityReport,
    EntityScore,
    entity_f1,
    entity_precision,
    entity_recall,
    entity_report,
)
from maxmargin.metrics.labels import Confusion, confusion, sequence_accuracy, token_accuracy
from maxmargin.metrics.overlap import average_precision, corloc, iou, mean_iou
from maxmargin.metrics.scoring import get_scorer

__all__ = [
    "Confusion",
    "EntityReport",
    "EntityScore",
    "Reliability",
    "average_precision",
    "confusion",
    "corloc",
    "entity_f1",
    "entity_precision",
    "entity_recall",
    "entity_report",
    "expected_calibration_error",
    "find_temperature",
    "get_scorer",
    "iou",
    "las",
    "mean_iou",
    "reliability",
    "sequence_accuracy",
    "temper",
    "token_accuracy",
    "uas",
]
