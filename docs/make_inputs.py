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


def page() -> str:
    """The whole page."""
    parts = [START]
    for part, heading in HEADINGS.items():
        lines = [_line(role) for role in ROLES if role.of == part]
        parts.append(
            f"## {heading}\n\n| flag | keyword | meaning | recognised names |\n|---|---|---|---|\n"
            + "\n".join(lines)
            + "\n"
            + LAWS * (part == "belief")
        )
    return "\n".join(parts)


def _line(role: Role) -> str:
    takes = f" {role.metavar}" if role.metavar else ""
    flag = f"`--{(role.flag or role.name).replace('_', '-')}{takes}`"
    names = ", ".join(f"`{name}`" for name in role.names.split())
    if role.examples:
        names = f"such as {', '.join(f'`{name}`' for name in role.examples.split())}"
    if role.choices:
        names = f"takes {' or '.join(f'`{choice}`' for choice in role.choices)}"
    return f"| {flag} | `{role.name}` | {role.help} | {names or 'none'} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
