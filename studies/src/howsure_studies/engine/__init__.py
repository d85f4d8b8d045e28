"""Plans, their trials, resumable runs of them, and the store of what they give."""

from typing import TYPE_CHECKING

from howsure.core.convert import packed, unpacked
from howsure.core.optional import exporting
from howsure_studies.engine.executor import RunListener
from howsure_studies.engine.papers import OwnNumber, Published, published
from howsure_studies.engine.plan import Plan, load_plan, plan_file, plan_names, studies, toml_value
from howsure_studies.engine.running import RunSummary, Survey, combined, run, survey
from howsure_studies.engine.shipped import (
    in_bits,
    plan_shipped,
    shipped_studies,
    singles,
    study_shipped,
)
from howsure_studies.engine.store import (
    FORMAT,
    DamagedError,
    OutputError,
    Status,
    Store,
    TrialEntry,
    TrialError,
    TrialOutput,
    address_of,
    canonical,
)
from howsure_studies.engine.study import (
    Combined,
    Group,
    Study,
    Trial,
    gathered,
    grouped,
    study_of,
    trials_of,
)
from howsure_studies.engine.tables import parquet_bytes, records_table, stacked, to_arrow
from howsure_studies.engine.trials import Outcome, kept_error, provenance

if TYPE_CHECKING:
    from howsure_studies.engine.comparison import Comparison as Comparison
    from howsure_studies.engine.comparison import RunVariance as RunVariance
    from howsure_studies.engine.comparison import columns_of as columns_of
    from howsure_studies.engine.comparison import crossed_spread as crossed_spread
    from howsure_studies.engine.comparison import side_by_side as side_by_side
    from howsure_studies.engine.critical_difference import rank_figure as rank_figure
    from howsure_studies.engine.entries import absolute as absolute
    from howsure_studies.engine.entries import check_options as check_options
    from howsure_studies.engine.entries import complete_numbers as complete_numbers
    from howsure_studies.engine.entries import make_method as make_method
    from howsure_studies.engine.entries import make_world as make_world
    from howsure_studies.engine.entries import method_identity as method_identity
    from howsure_studies.engine.entries import noise_of as noise_of
    from howsure_studies.engine.entries import numbers_hash as numbers_hash
    from howsure_studies.engine.entries import present as present
    from howsure_studies.engine.entries import table_column as table_column
    from howsure_studies.engine.entries import table_data as table_data
    from howsure_studies.engine.entries import world_identity as world_identity
    from howsure_studies.engine.grids import MISSING as MISSING
    from howsure_studies.engine.grids import Show as Show
    from howsure_studies.engine.grids import Shown as Shown
    from howsure_studies.engine.grids import beside_section as beside_section
    from howsure_studies.engine.grids import estimate_cell as estimate_cell
    from howsure_studies.engine.grids import interval_cell as interval_cell
    from howsure_studies.engine.grids import number_grid as number_grid
    from howsure_studies.engine.grids import pivot as pivot
    from howsure_studies.engine.grids import record_cell as record_cell
    from howsure_studies.engine.grids import share_of as share_of
    from howsure_studies.engine.page import SIDE_BY_SIDE_NOTE as SIDE_BY_SIDE_NOTE
    from howsure_studies.engine.page import choice_of as choice_of
    from howsure_studies.engine.page import coverage_of as coverage_of
    from howsure_studies.engine.page import named as named
    from howsure_studies.engine.page import over_worlds as over_worlds
    from howsure_studies.engine.page import overview as overview
    from howsure_studies.engine.page import save_pages as save_pages
    from howsure_studies.engine.page import side_by_side_grids as side_by_side_grids
    from howsure_studies.engine.page import standings_grid as standings_grid
    from howsure_studies.engine.page import study_document as study_document
    from howsure_studies.engine.ranks import compare_ranks as compare_ranks
    from howsure_studies.engine.standings import Standings as Standings

__all__ = [
    "FORMAT",
    "MISSING",
    "SIDE_BY_SIDE_NOTE",
    "Combined",
    "Comparison",
    "DamagedError",
    "Group",
    "Outcome",
    "OutputError",
    "OwnNumber",
    "Plan",
    "Published",
    "RunListener",
    "RunSummary",
    "RunVariance",
    "Show",
    "Shown",
    "Standings",
    "Status",
    "Store",
    "Study",
    "Survey",
    "Trial",
    "TrialEntry",
    "TrialError",
    "TrialOutput",
    "absolute",
    "address_of",
    "beside_section",
    "canonical",
    "check_options",
    "choice_of",
    "columns_of",
    "combined",
    "compare_ranks",
    "complete_numbers",
    "coverage_of",
    "crossed_spread",
    "estimate_cell",
    "gathered",
    "grouped",
    "in_bits",
    "interval_cell",
    "kept_error",
    "load_plan",
    "make_method",
    "make_world",
    "method_identity",
    "named",
    "noise_of",
    "number_grid",
    "numbers_hash",
    "over_worlds",
    "overview",
    "packed",
    "parquet_bytes",
    "pivot",
    "plan_file",
    "plan_names",
    "plan_shipped",
    "present",
    "provenance",
    "published",
    "rank_figure",
    "record_cell",
    "records_table",
    "run",
    "save_pages",
    "share_of",
    "shipped_studies",
    "side_by_side",
    "side_by_side_grids",
    "singles",
    "stacked",
    "standings_grid",
    "studies",
    "study_document",
    "study_of",
    "study_shipped",
    "survey",
    "table_column",
    "table_data",
    "to_arrow",
    "toml_value",
    "trials_of",
    "unpacked",
    "world_identity",
]

_LATE = {
    "comparison": "Comparison RunVariance columns_of crossed_spread side_by_side",
    "entries": (
        "absolute check_options complete_numbers make_method make_world method_identity noise_of "
        "numbers_hash present table_column table_data world_identity"
    ),
    "page": (
        "SIDE_BY_SIDE_NOTE choice_of coverage_of named over_worlds overview save_pages "
        "side_by_side_grids standings_grid study_document"
    ),
    "grids": (
        "MISSING Show Shown beside_section estimate_cell interval_cell number_grid pivot "
        "record_cell share_of"
    ),
    "critical_difference": "rank_figure",
    "ranks": "compare_ranks",
    "standings": "Standings",
}
"""What loads when it is asked for: it brings methods and reports, which take time."""

__getattr__, _names, _ = exporting(__name__, _LATE)
