"""Write docs/inputs.md: the roles that columns may play, and the names that say so."""

from __future__ import annotations

from pathlib import Path

from howsure.inputs.roles import ROLES, Role

PAGE = Path(__file__).parent / "inputs.md"
HEADINGS = {
    "outcome": "Outcome",
    "prediction": "Predictions",
    "doubt": "Uncertainty scores",
    "inputs": "Inputs of the model",
    "rows": "Groups, weights, clusters and time",
    "order": "Models and row names",
    "long": "Long tables",
}
START = """\
# Columns of a table

Predictions may be in a CSV or TSV file (also `.gz`, `.zst`), a Parquet or an Arrow file. An
[Excel workbook](how-to/from-excel.md), a [netCDF file of ArviZ](how-to/from-arviz.md) and
[lines of JSON](how-to/language-models.md#multiple-choice-questions) (.jsonl) also work.
In Python they may be any data frame, or a mapping of arrays. howsure recognises columns from their
names. For other names, use a flag of a command that reads tables, such as `howsure assess`, or a
keyword of `howsure.Table`, which every function takes. Flags take precedence over names; an empty
one (`--time ""`) disables a role. Ambiguous names are an error, which states the flag to use.
`--explain-input` shows how each column is read.

Names are compared in lower case, with spaces and hyphens as underscores.

A column of dates and one of times of day, such as `Date` and `Time`, are read as one time. Dates
such as `31.12.2025` and `31/12/2025` are read day first, and the result states this.

The index of a pandas frame counts as its first columns, both in memory and in files from `to_csv`,
`to_parquet`, `to_excel` and R's `write.csv`. If no column is named like a time, an index of dates
without a name is the time. The same is true of a first column of at least 20 dates that increase
from row to row. Numbers without a name are row numbers and are ignored. With `--time ""`, no column
is the time; a column without a name is called `"Unnamed: 0"`.

`howsure recalibrate` adds columns whose names begin with `recalibrated_`, such as
`recalibrated_sd`. If a table has such predictions, they are read instead of the originals. Flags
that name a prediction (`--mean mean --sd sd`) read the originals. Without a recalibrated mean, the
original point forecast is used. Rows to be recalibrated need no y.
"""
LAWS = """
A point forecast and an sd are the mean and sd of a normal distribution; a mean without an sd is a
point forecast. The names of a distribution's parameters begin with its name (`t_df`), and all must
be present. The components of a mixture of normal distributions may be called `w1`, `mean1`, `sd1`,
`w2`, `mean2`, `sd2`, …. A number in the name of an interval end is its nominal coverage, in per
cent or as a share; one in the name of a quantile is its level. Such names are interpreted together:
`q5` is 5 % if there is also `q95`, and is not read alone. Quantiles at levels 0 and 1, such as `q0`
and `q1` together with `q0.5`, are bounds of y.

Class probabilities are columns such as `p_cat` and `p_dog`, at least two, whose rows sum to 1; the
prefix may also be `prob`, `proba`, `probability` or `softmax`. The rest of the name is the class,
and y is the class of each row, as text or as a number. Such names are recognised only if y contains
some of these classes, and no other column is a prediction with uncertainty. Without a column of
label sets, the sets consist of the likeliest classes that together reach `--coverage` (default
0.9). In `--softmax 'conf_*'`, the star matches the class.

A label set is one cell: `cat|dog`, `cat;dog`, `{cat, dog}` or a list in the notation of Python,
NumPy or JSON. An empty cell or `{}` is the empty set; `NA` is a missing one. The number in the name
of the column is its nominal coverage (`set_90`), or `--coverage` gives it.
"""

MODELS = """
One table may contain several models, in one of three ways.

- **One below the other**, with a column that names the model of each row. If no column has such a
  name, but the rows repeat for each label of some column, that is an error: it may be the model.
  `--model COLUMN` states that it is, and `--model ""` that it is not. Rows are the same if they
  have the same name, or the same y and inputs (if y varies enough).
- **Side by side**, with each model's columns named after it, as in nixtla's libraries: `LGBM`,
  `LGBM-lo-90`, `LGBM-hi-90`, `ETS`, `ETS-lo-90`, …, also `NHITS-median` and `NHITS-ql0.05`. Other
  names that begin or end with the model are recognised too, such as `ridge_mean`, `ridge_sd`,
  `forest_mean`, `forest_sd`. There must be at least two models, each with the same columns. This
  applies only if no column is a prediction without a model's name.
- **Point forecasts side by side**, with each column named after its model: `--points 'DNN*'` uses
  matching columns, and `--points "DNN 1,LEAR 56"` the named ones.

In a table with `unique_id` and `ds`, `ds` is the time and `unique_id` the series. It is the cluster
as well if there are ten series or more, and a group if there are fewer.
"""
ROWS = """
If there are `cutoff` and `time` but no `horizon`, the lead time is the number of steps of their
common grid from cutoff to time. For its use, see
[Judge forecasts by lead time](how-to/lead-time.md). The roles of these frames are recognised:

| frame | time | cutoff | horizon | series |
|---|---|---|---|---|
| nixtla's `cross_validation` | `ds` | `cutoff` | steps from `cutoff` to `ds` | `unique_id` |
| a forecast hub's | `target_end_date` | none | `horizon` | `location`, if these two are present |
| AutoGluon's and fev's | `timestamp` | none | none | `item_id` |
"""
EASE = """
An encoder computes an embedding from a column of texts or of image paths. It may be:

| encoder | what it is |
|---|---|
| `transformers:FOLDER` | a model of Hugging Face's library, in a folder or by its name on the hub |
| `open_clip:NAME/PRETRAINED` | a model of open_clip, if that is installed |
| `MODULE:NAME` | a function in a module, or a fitted transformer of scikit-learn for texts |

Importing a module runs its code; the current folder is searched too. A function gets a list of
texts, or of images as arrays of shape (height, width, 3) with whole numbers from 0 to 255. It
returns one vector for each. So any library can be used. An example is a file `my_encoders.py` for a
network of images in ONNX:

<!-- not run: the network is yours; tests/inputs/test_encoders_tried.py runs it on one -->
```python
import numpy as np
import onnxruntime

network = onnxruntime.InferenceSession("network.onnx", providers=["CPUExecutionProvider"])


def pictures(images):
    x = np.stack(images).transpose(0, 3, 1, 2).astype("float32") / 255
    return network.run(None, {"pixels": x})[0]
```

The flag is then `--encode path=my_encoders:pictures`. Images of several sizes must be resized
first, and the numbers scaled as in the training of the network.

`howsure.metrics.ease` computes ease scores from a model. With them, the report also has T-CV, T-SS
and related measures, a finding, and a figure of coverage by ease.
"""
LONG = """
A long table has one row for each level or draw of each prediction, as in `scoringutils` and
forecast hubs. Howsure converts it to one row per case:

| location | target_end_date | observed | model | quantile_level | predicted |
|---|---|---|---|---|---|
| DE | 2021-05-01 | 106 | ridge | 0.05 | 81 |
| DE | 2021-05-01 | 106 | ridge | 0.5 | 104 |
| DE | 2021-05-01 | 106 | ridge | 0.95 | 127 |

The prediction is the column of the point forecast, or one called `value`. Rows with the same name
(`--row-id`) are one case. Without names, a case consists of rows that agree in all other columns.
Columns that number the rows, or depend only on the level, do not count. If there is no other
column, the first rows of every level are one case, and so on, as long as y agrees.

Each case must have one y, and every level once; `--missing drop` leaves out incomplete cases. Draws
need no common numbers, but every case needs the same number of draws. Other columns may be groups,
features, weights or time if they are constant within a case.

If a column `boundary` has the values lower and upper, `range` or `interval_range` is the coverage,
as in older tables of `scoringutils`. In a hub's table, `output_type` shows whether `output_type_id`
is a level or a draw. Its medians or means are the point forecast.

Names alone do not make a long table: levels must be between 0 and 1, and draws of a case must have
the same y. Commands that add columns, such as `howsure recalibrate`, do not accept long tables.
"""


DOUBT = """
Any score with the prediction can be used, such as a distance to the training rows: AURC and the
risk–coverage curve sort rows by it, the lowest first. Without a score they use widths. For a
standard deviation use `--sd`, because scores do not give intervals.
"""
REMARKS = {
    **{"prediction": LAWS, "doubt": DOUBT, "inputs": EASE, "rows": ROWS, "order": MODELS},
    "long": LONG,
}


def page() -> str:
    """The whole page."""
    parts = [START]
    for part, heading in HEADINGS.items():
        lines = [_line(role) for role in ROLES if role.of == part]
        parts.append(
            f"## {heading}\n\n| flag | keyword | meaning | recognised names |\n|---|---|---|---|\n"
            + "\n".join(lines)
            + "\n"
            + REMARKS.get(part, "")
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
