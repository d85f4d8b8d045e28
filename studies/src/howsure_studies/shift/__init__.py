"""Does coverage survive a shift: any method calibrated at home and tried elsewhere.

`ShiftStudy` runs plans, `evaluate_shift` one model by hand: from what networks put out
(`network_answers`), or from any method that can be fitted (`fit_shift`, `model_answers`). Source:
Gustafsson, Danelljan and Schön (TMLR 2023).
"""

from howsure_studies.shift.attribution import ATTRIBUTED, SharedInputs, loss_terms
from howsure_studies.shift.evaluate import (
    Answers,
    ShiftRun,
    ShiftTest,
    calibration_shift,
    evaluate_shift,
)
from howsure_studies.shift.figures import (
    change_figure,
    degree_figure,
    measure_figure,
    rank_scatter,
    trade_figure,
    two_ranks,
)
from howsure_studies.shift.methods import (
    INTERVAL_METHODS,
    SHIFT_METHODS,
    VARIATIONS,
    NetworkOutputs,
    NetworkRuns,
    SharedWork,
    ShiftMethod,
    fit_shift,
    model_answers,
    network_answers,
    paper_runs,
    shift_method,
)
from howsure_studies.shift.page import shift_report
from howsure_studies.shift.results import (
    ALL_ROWS,
    DIRECTIONS,
    MEASURES,
    ShiftResult,
    ShiftValue,
    average_errors,
    degree_curves,
    shift_against_error,
    shift_ranks,
)
from howsure_studies.shift.study import ShiftOptions, ShiftStudy, task_identity

__all__ = [
    "ALL_ROWS",
    "ATTRIBUTED",
    "DIRECTIONS",
    "INTERVAL_METHODS",
    "MEASURES",
    "SHIFT_METHODS",
    "VARIATIONS",
    "Answers",
    "NetworkOutputs",
    "NetworkRuns",
    "SharedInputs",
    "SharedWork",
    "ShiftMethod",
    "ShiftOptions",
    "ShiftResult",
    "ShiftRun",
    "ShiftStudy",
    "ShiftTest",
    "ShiftValue",
    "average_errors",
    "calibration_shift",
    "change_figure",
    "degree_curves",
    "degree_figure",
    "evaluate_shift",
    "fit_shift",
    "loss_terms",
    "measure_figure",
    "model_answers",
    "network_answers",
    "paper_runs",
    "rank_scatter",
    "shift_against_error",
    "shift_method",
    "shift_ranks",
    "shift_report",
    "task_identity",
    "trade_figure",
    "two_ranks",
]
