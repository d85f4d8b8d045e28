"""Write docs/inputs.md: the roles that columns may play, and the names that say so."""

from __future__ import annotations

from pathlib import Path

from howsure.inputs.roles import ROLES, Role

PAGE = Path(__file__).parent / "inputs.md"
HEADINGS = {
    "outcome": "Outcome",
    "belief": "Predictions",
    "inputs": "Inputs of the model",
    "rows": "Groups, weights, clusters and time",
    "order": "Models and row names",
    "long": "Long tables",
}
START = """\
# Columns of a table

Predictions come in a CSV or TSV file (also `.gz`, `.zst`), a Parquet or an Arrow file. A [workbook
of Excel](how-to/from-excel.md) and a [netCDF file of ArviZ](how-to/from-arviz.md) serve too. In
Python it may be any data frame, or a mapping of arrays. Columns are recognised by their names.
Where a name is not, give a flag of a command that reads tables, such as `howsure assess`, or a
keyword of `howsure.load`. Flags take precedence over names; an empty one (`--time ""`) leaves a
role empty. Names that allow two readings are an error, which names the flag to use.
`--explain-input` shows how each column is read.

Names are compared in lower case, with spaces and hyphens as underscores.

A column of dates and one of times of day, such as `Date` and `Time`, are read as one time. Dates
such as `31.12.2025` and `31/12/2025` are read day first, and the result states this.

The index of a pandas frame counts as its first columns, in memory as in the files that `to_csv`,
`to_parquet`, `to_excel` and R's `write.csv` write of it. Where no column is named like times, an
index without a name is the time if it holds dates, and so is a first column of 20 dates or more
that rise from row to row. Numbers without a name count rows and are ignored. `--time ""` leaves
times out; a column without a name is called `"Unnamed: 0"`.

`howsure recalibrate` adds columns whose names begin with `recalibrated_`, such as
`recalibrated_sd`. Where a table has such predictions, they are read in place of the originals.
Flags that name a prediction (`--mean mean --sd sd`) read the originals. The point forecast is kept
where there is no recalibrated mean. Rows to be recalibrated need no y.
"""
LAWS = """
A point forecast beside an sd is the mean of a normal distribution; a mean without an sd is a point
forecast. The names of a distribution's parameters begin with its name (`t_df`), and all must be
there. The parts of a mixture of normal distributions may be called `w1`, `mean1`, `sd1`, `w2`,
`mean2`, `sd2`, …. A number in the name of an interval's end is its nominal coverage, in per cent or
as a share; one in the name of a quantile is its level. Such names are read together: `q5` is 5 %
beside `q95`, and is not read alone.

Class probabilities are columns such as `p_cat` and `p_dog`, at least two, whose rows sum to 1; the
prefix may also be `prob`, `proba`, `probability` or `softmax`. What follows it is the class, and y
holds the class of each row, as text or as a number. Such names are read only where y holds some of
these classes, and no other column is a prediction with uncertainty. Without a column of label sets,
the sets judged are those that the probabilities claim: the likeliest classes that together reach
`--coverage`, 0.9 if not given. With `--softmax 'conf_*'`, the star stands for the class.

A label set is one cell: `cat|dog`, `cat;dog`, `{cat, dog}` or a list as Python, NumPy or JSON write
it. An empty cell or `{}` is the empty set; `NA` is a missing one. The number in the name of the
column is its nominal coverage (`set_90`), or `--coverage` gives it.
"""

MODELS = """
One table may hold several models, in one of three ways.

- **Under one another**, with a column that names the model of each row. If no column has such a
  name, but each label of some column has the same rows, that is an error: it may be the model.
  `--model COLUMN` states that it is, and `--model ""` that it is not. Rows are the same if they
  have the same name, or the same y and inputs (if y varies enough).
- **Beside one another**, each model's columns named after it, as nixtla's libraries write them:
  `LGBM`, `LGBM-lo-90`, `LGBM-hi-90`, `ETS`, `ETS-lo-90`, …, also `NHITS-median` and `NHITS-ql0.05`.
  Other names that begin or end with the model are read too, such as `ridge_mean`, `ridge_sd`,
  `forest_mean`, `forest_sd`. There must be at least two models, each with the same columns.
  Names are read so only where no column is a prediction without a model's name.
- **Point forecasts beside one another**, each column called after its model: `--points 'DNN*'`
  takes those that match, and `--points "DNN 1,LEAR 56"` those that are named.

In a table with `unique_id` and `ds`, `ds` is the time and `unique_id` the series. It is the cluster
as well if there are ten series or more, and a group if there are fewer.
"""
ROWS = """
If `cutoff` and `time` are there and `horizon` is not, the lead time is by how many steps of their
common grid the one comes after the other. [Judge forecasts by lead time](how-to/lead-time.md) tells
what comes of it. Frames of forecasts have their roles by themselves:

| frame | time | cutoff | horizon | series |
|---|---|---|---|---|
| nixtla's `cross_validation` | `ds` | `cutoff` | steps from `cutoff` to `ds` | `unique_id` |
| a forecast hub's | `target_end_date` | none | `horizon` | `location`, beside these two |
| AutoGluon's and fev's | `timestamp` | none | none | `item_id` |
"""
EASE = """
An encoder makes the embedding from a column of texts or of paths of images. It may be:

| encoder | what it is |
|---|---|
| `transformers:FOLDER` | a model of Hugging Face's library, in a folder or by its name on the hub |
| `open_clip:NAME/PRETRAINED` | a model of open_clip, where that is installed |
| `MODULE:NAME` | a function in a module, or a fitted transformer of scikit-learn for texts |

A module is imported, which runs its code; those in the folder where howsure runs are found. A
function gets a list of texts, or of images as arrays of shape (height, width, 3) with whole numbers
from 0 to 255. It returns one vector each. So any library serves. Such is a file `my_encoders.py`
for a network of images in ONNX:

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
first, and the numbers scaled as they were when the network was trained.

The column of ease says how easy each row is; `howsure.metrics.ease` computes it from a model. T-CV,
T-SS and their kin then stand among the measures, with a finding and a figure of coverage by ease.
"""
LONG = """
A long table has a row for each level or draw of each prediction, as `scoringutils` and forecast
hubs write them. Howsure turns it into one row for each case:

| location | target_end_date | observed | model | quantile_level | predicted |
|---|---|---|---|---|---|
| DE | 2021-05-01 | 106 | ridge | 0.05 | 81 |
| DE | 2021-05-01 | 106 | ridge | 0.5 | 104 |
| DE | 2021-05-01 | 106 | ridge | 0.95 | 127 |

The prediction is the column of the point forecast, or one called `value`. Rows with the same name
(`--row-id`) are one case; without names, rows that agree in all other columns. Columns that number
the rows, or depend on the level alone, do not count. If there is no other column, the first rows of
every level are one case, and so on, as long as y agrees.

Each case must have one y, and every level once; `--missing drop` leaves out cases that lack some.
Draws need no common numbers, but every case needs equally many. Other columns may serve as groups,
features, weights or time if they are constant within a case.

With a column `boundary` of lower and upper, `range` or `interval_range` is the coverage, as in
older tables of `scoringutils`. In a hub's table, `output_type` tells whether `output_type_id` is a
level or a draw. Its medians or means are the point forecast.

Names alone do not make a long table: levels must lie between 0 and 1, and draws of a case must
share their y. A command that adds columns, such as `howsure recalibrate`, takes no long table.
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
            + {"belief": LAWS, "inputs": EASE, "rows": ROWS, "order": MODELS, "long": LONG}.get(
                part, ""
            )
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
