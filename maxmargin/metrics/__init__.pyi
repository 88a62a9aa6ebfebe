"""The public names of metrics and where they are defined: a line each, as in that of `maxmargin`."""

from maxmargin.metrics.attachment import las as las
from maxmargin.metrics.attachment import uas as uas
from maxmargin.metrics.calibration import Reliability as Reliability
from maxmargin.metrics.calibration import expected_calibration_error as expected_calibration_error
from maxmargin.metrics.calibration import find_temperature as find_temperature
from maxmargin.metrics.calibration import reliability as reliability
from maxmargin.metrics.calibration import temper as temper
from maxmargin.metrics.entities import EntityReport as EntityReport
from maxmargin.metrics.entities import EntityScore as EntityScore
from maxmargin.metrics.entities import entity_f1 as entity_f1
from maxmargin.metrics.entities import entity_precision as entity_precision
from maxmargin.metrics.entities import entity_recall as entity_recall
from maxmargin.metrics.entities import entity_report as entity_report
from maxmargin.metrics.entity_curves import EntityCurve as EntityCurve
from maxmargin.metrics.entity_curves import entity_curve as entity_curve
from maxmargin.metrics.labels import Confusion as Confusion
from maxmargin.metrics.labels import confusion as confusion
from maxmargin.metrics.labels import sequence_accuracy as sequence_accuracy
from maxmargin.metrics.labels import token_accuracy as token_accuracy
from maxmargin.metrics.overlap import average_precision as average_precision
from maxmargin.metrics.overlap import corloc as corloc
from maxmargin.metrics.overlap import iou as iou
from maxmargin.metrics.overlap import mean_iou as mean_iou
from maxmargin.metrics.scoring import get_scorer as get_scorer
