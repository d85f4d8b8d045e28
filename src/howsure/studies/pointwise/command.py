"""`howsure simulate`: the flags of the command."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from howsure.cli.options import Outputs, Seed, share

app = typer.Typer(add_completion=False, rich_markup_mode="rich")


@app.command(
    name="simulate",
    epilog="Example: howsure simulate heteroscedastic --method naive_bootstrap -o pointwise.html",
)
def simulate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="WORLD|TABLE", help="A simulated world by name, or a table of your own."
        ),
    ],
    method: Annotated[
        list[str],
        typer.Option(
            "--method",
            metavar="NAME[:OPTION=VALUE,…]",
            help="A method by name, or module:attribute of a method or regressor. Repeatable.",
        ),
    ] = [],  # noqa: B006
    output: Outputs = [],  # noqa: B006
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of y in the table.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns of x in the table; all if omitted.")
    ] = None,
    coverage: Annotated[
        list[float], typer.Option(callback=share, help="Nominal coverage, such as 0.9. Repeatable.")
    ] = [],  # noqa: B006
    trials: Annotated[
        int, typer.Option(min=1, help="Greatest number of training sets to draw.")
    ] = 100,
    until_se: Annotated[
        float | None,
        typer.Option(help="Stop early once the Monte-Carlo standard error is this small."),
    ] = None,
    of: Annotated[
        Literal["picf", "cicf", "brier"],
        typer.Option(help="With --until-se: the quantity whose standard error counts."),
    ] = "picf",
    noise: Annotated[
        str | None,
        typer.Option(help="Noise distribution, such as normal, student_t3, gamma or laplace."),
    ] = None,
    residuals: Annotated[
        Literal["out-of-bag", "in-sample"],
        typer.Option(help="With a table: the residuals that its noise is fitted to."),
    ] = "out-of-bag",
    train_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows in each training set.")
    ] = None,
    test_rows: Annotated[int | None, typer.Option(min=1, help="Number of test points.")] = None,
    covariates: Annotated[
        Literal["random", "fixed"],
        typer.Option(help="Draw x anew in each trial (random), or once (fixed)."),
    ] = "random",
    missing: Annotated[
        Literal["error", "drop"],
        typer.Option(help="Rows with missing values: stop with an error, or drop them."),
    ] = "error",
    encoding: Annotated[str | None, typer.Option(help="Text encoding of the table.")] = None,
    decimal: Annotated[Literal[".", ","], typer.Option(help="Decimal mark of text tables.")] = ".",
    seed: Seed = 0,
) -> None:
    """Measure a method's coverage at every point of a world; exit 1 if all trials failed."""
    from howsure.studies.pointwise.simulate import Request, run

    run(
        Request(
            source=source,
            methods=method,
            target=target,
            features=[name.strip() for name in (features or "").split(",") if name.strip()],
            coverages=coverage,
            trials=trials,
            until=until_se,
            of=of,
            noise=noise,
            residuals=residuals,
            n_train=train_rows,
            n_test=test_rows,
            covariates=covariates,
            seed=seed,
            missing=missing,
            encoding=encoding,
            decimal=decimal,
            outputs=output,
        )
    )
