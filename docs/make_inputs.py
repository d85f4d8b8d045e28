"""Write docs/inputs.md: the roles that columns may play, and the names that say so."""

from __future__ import annotations

from pathlib import Path

from howsure.inputs.roles import ROLES, Role

PAGE = Path(__file__).parent / "inputs.md"
HEADINGS = {
    "outcome": "What happened",
    "belief": "What was believed",
    "inputs": "Inputs of the model",
    "rows": "What else is known of the rows",
    "order": "Which rows are which",
    "long": "Long tables",
}
START = """\
# Columns of a table

Predictions come in a CSV or TSV file (also `.gz`, `.zst`), a Parquet or an Arrow file; in Python
also as any data frame or as a mapping of arrays. The name of a column says what it holds. Where it
does not, say so by a flag of a command that reads tables, such as `howsure assess`, or by a keyword
of `howsure.load`. A flag goes before all names; an empty one (`--time ""`) leaves a role empty.
Names that allow two readings are an error, which tells the flag to use; `--explain-input` shows how
each column is read.

Names are compared in lower case, with spaces and hyphens as underscores.

`howsure recalibrate` adds columns whose names begin with `recalibrated_`, such as
`recalibrated_sd`. Where a table holds such predictions, they go before those without; flags that
name a prediction (`--mean mean --sd sd`) read the originals. A point forecast serves on where no
recalibrated mean stands in its place. Rows to be recalibrated need no y.
"""
LAWS = """
A point forecast beside an sd is the mean of a normal law; a mean without an sd is a point forecast.
The names of a law's parameters begin with the law's name, and all must be there. The parts of a
mixture of normal laws may be called `w1`, `mean1`, `sd1`, `w2`, `mean2`, `sd2`, …. A number in the
name of an interval's end is its nominal coverage, in per cent or as a share; one in the name of a
quantile is its level. Of a family of such names, each helps to read the others: `q5` is 5 % beside
`q95`, and alone it is not read.
"""

MODELS = """
Several models may stand in one table, in either of two ways.

- **Under one another**, with a column that names the model of a row. Where no column's name says
  so, and the labels of one each hold the same rows, that is an error: the column may be the model.
  `--model COLUMN` says that it is, and `--model ""` that it is not. The same rows are rows of the
  same names, or of the same y and inputs, where y varies enough for that to be no chance.
- **Beside one another**, each model's columns named after it, as nixtla's libraries write them:
  `LGBM`, `LGBM-lo-90`, `LGBM-hi-90`, `ETS`, `ETS-lo-90`, …, also `NHITS-median` and `NHITS-ql0.05`.
  Any other names will do that begin or end with the model, such as `ridge_mean`, `ridge_sd`,
  `forest_mean`, `forest_sd`, if there are two models at least and each has what the others have.
  Names are read so only where no column is a prediction without a model's name.

Where `unique_id` and `ds` both stand, `ds` is the time. `unique_id` is the cluster if it holds ten
series or more, and a group if it holds fewer.
"""
LONG = """
A long table holds a row for each level or draw of each prediction, as `scoringutils` and forecast
hubs write them. It is read with a row for each case:

| location | target_end_date | observed | model | quantile_level | predicted |
|---|---|---|---|---|---|
| DE | 2021-05-01 | 106 | ridge | 0.05 | 81 |
| DE | 2021-05-01 | 106 | ridge | 0.5 | 104 |
| DE | 2021-05-01 | 106 | ridge | 0.95 | 127 |

The prediction is the column of the point forecast, or one that is called `value`. Rows with the
same name (`--row-id`) are one case; without names, rows that agree in all other columns. Columns
that number the rows, or follow the level, are left out of that. Where no other column is there, the
first rows of every level are one case, and so on, if y agrees.

Each case must have one y, and every level once; `--missing drop` leaves out cases that lack some.
Draws need no common numbers, but every case needs as many. All other columns may serve as groups,
features, weights or time, as long as they do not differ within a case.

Where a column `boundary` says lower and upper, `range` or `interval_range` holds coverages, as in
older tables of `scoringutils`. In a hub's table, `output_type` says whether `output_type_id` is a
level or a draw, and its medians or means are the point forecast.

Names alone make no long table: levels must lie between 0 and 1, draws must share their y. A command
that adds columns to a table, such as `howsure recalibrate`, takes no long one.
"""


def page() -> str:
    """The whole page."""
    parts = [START]
    for part, heading in HEADINGS.items():
        lines = [_line(role) for role in ROLES if role.of == part]
        parts.append(
            f"## {heading}\n\n| flag | keyword | meaning | recognised names |\n|---|---|---|---|\n"
            + "\n".join(lines)
            + "\n"
            + {"belief": LAWS, "order": MODELS, "long": LONG}.get(part, "")
        )
    return "\n".join(parts)


def _line(role: Role) -> str:
    takes = f" {role.metavar}" if role.metavar else ""
    flag = f"`--{(role.flag or role.name).replace('_', '-')}{takes}`"
    names = "such as " * bool(role.examples) + ", ".join(f"`{name}`" for name in role.shown)
    if role.choices:
        names = f"takes {' or '.join(f'`{choice}`' for choice in role.choices)}"
    return f"| {flag} | `{role.name}` | {role.help} | {names or 'none'} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
