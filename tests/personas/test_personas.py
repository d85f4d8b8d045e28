"""People arrive with what other tools gave them, write one line, and read findings.

Each test makes what a person would hold, runs the line that the person would write (`said`, or
the command), and asserts what the person would see. The truth of each world is known, so it is
known what they should see.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.rng import child
from howsure.report.assessment import Assessment

pytestmark = pytest.mark.slow

N = 400
Array = np.ndarray[Any, np.dtype[Any]]


def world(name: str, n: int = N) -> tuple[Array, Array]:
    """Inputs, shape (n, 1), and y of a line with normal errors of sd 1."""
    rng = child(0, "personas", name)
    x = rng.uniform(-2, 2, (n, 1))
    return x, 2 * x[:, 0] + rng.normal(size=n)


def said(line: str, **held: Any) -> Assessment:
    """What comes of the one line that a person writes."""
    assert len(line.splitlines()) == 1
    names = {"howsure": howsure, **held}
    exec(compile(f"result = {line}", "a person", "exec"), names)
    result = names["result"]
    assert isinstance(result, Assessment)
    return result


def states(result: Assessment, model: str = "") -> dict[str, str]:
    """The state of each finding."""
    return {f.id: f.state for f in result.findings if not model or f.model == model}


def commanded(line: str) -> subprocess.CompletedProcess[str]:
    """What a command of the line `howsure …` prints, as a process of its own."""
    program, *arguments = line.split()
    assert program == "howsure"
    command = [sys.executable, "-c", "from howsure.cli.entry import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_owner_of_a_mapie_model() -> None:
    regression = needs("mapie.regression")
    from sklearn.linear_model import LinearRegression

    (x, y), (new, truth) = world("mapie, fitted", 4_200), world("mapie")
    model = regression.SplitConformalRegressor(
        LinearRegression().fit(x[:200], y[:200]), confidence_level=0.9
    )
    model.conformalize(x[200:], y[200:])
    result = said(
        "howsure.assess(y, model.predict_interval(X), coverage=0.9)", **locals_of(model, new, truth)
    )
    assert states(result)["coverage"] != "bad"
    assert result.record("empirical_coverage").coverage == 0.9
    point, ends = model.predict_interval(new)
    inside = (ends[:, 0, 0] <= truth) & (truth <= ends[:, 1, 0])
    assert result.value("empirical_coverage") == pytest.approx(inside.mean())
    assert result.value("mae") == pytest.approx(np.abs(truth - point).mean())
    asked = said("howsure.assess_model(model, X, y)", **locals_of(model, new, truth))
    assert asked.value("empirical_coverage") == pytest.approx(inside.mean())
    shifted = said("howsure.assess_model(model, X, y)", **locals_of(model, new, truth + 3))
    assert states(shifted)["coverage"] == "bad"


def locals_of(model: Any, x: Array, y: Array) -> dict[str, Any]:
    """The names that people give to them."""
    return {"model": model, "X": x, "y": y}


@pytest.mark.rate
def test_the_owner_of_lightgbm_quantiles() -> None:
    lightgbm = needs("lightgbm")
    (x, y), (new, truth) = world("lightgbm, fitted"), world("lightgbm")
    models = [
        lightgbm.LGBMRegressor(
            objective="quantile", alpha=level, min_child_samples=2, n_estimators=200, verbosity=-1
        ).fit(x, y)
        for level in (0.05, 0.5, 0.95)
    ]
    result = said("howsure.assess_model(models, X, y)", models=models, X=new, y=truth)
    assert states(result)["coverage"] == "bad"  # they learnt their own rows by heart
    (line,) = (f.sentence for f in result.findings if f.id == "coverage")
    assert line.startswith("The 90 % intervals cover ")
    assert "under-cover" in line


@pytest.mark.rate
def test_the_owner_of_an_ngboost_model() -> None:
    ngboost = needs("ngboost")
    (x, y), (new, truth) = world("ngboost, fitted"), world("ngboost")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ngboost.NGBRegressor(n_estimators=60, verbose=False, random_state=0).fit(x, y)
        predicted = model.pred_dist(new)
    result = said("howsure.assess(y, predicted)", y=truth, predicted=predicted)
    assert result.value("crps") == pytest.approx(
        float(np.mean(crps_of_normal(truth, predicted.params["loc"], predicted.params["scale"])))
    )
    assert {"coverage", "spread", "bias"} <= states(result).keys()
    assert said("howsure.assess_model(model, X, y)", **locals_of(model, new, truth)).value(
        "crps"
    ) == pytest.approx(result.value("crps"))


def crps_of_normal(y: Array, mean: Array, sd: Array) -> Array:
    """Gneiting and Raftery 2007, equation 21 (with its sign turned)."""
    from scipy.stats import norm

    z = (y - mean) / sd
    return np.asarray(sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))


def test_the_forecaster_with_sktime() -> None:
    pd, naive = needs("pandas"), needs("sktime.forecasting.naive")
    rng = child(0, "personas", "sktime")
    months = pd.period_range("1990-01", periods=2 * N, freq="M")
    series = pd.Series(rng.normal(size=2 * N), index=months)
    past, y = series[:N], series[N:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecaster = naive.NaiveForecaster(strategy="mean").fit(past)
        horizon = np.arange(1, N + 1)
        intervals = forecaster.predict_interval(horizon, coverage=[0.5, 0.9])
        quantiles = forecaster.predict_quantiles(horizon, alpha=[0.05, 0.25, 0.5, 0.75, 0.95])
    result = said("howsure.assess(y, intervals)", y=y, intervals=intervals)
    lower, upper = intervals.to_numpy()[:, 2], intervals.to_numpy()[:, 3]
    truth = y.to_numpy()
    assert result.record("empirical_coverage", coverage=0.9).value == pytest.approx(
        ((lower <= truth) & (truth <= upper)).mean()
    )
    assert states(result)["coverage"] != "bad"
    by_levels = said("howsure.assess(y, quantiles)", y=y, quantiles=quantiles)
    assert by_levels.value("empirical_coverage", coverage=0.9) == result.value(
        "empirical_coverage", coverage=0.9
    )


@pytest.mark.rate
def test_the_forecaster_with_nixtla() -> None:
    mlforecast, utils = needs("mlforecast"), needs("mlforecast.utils")
    lightgbm = needs("lightgbm")
    from sklearn.linear_model import LinearRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        series = utils.generate_daily_series(5, min_length=180, max_length=200)
        forecaster = mlforecast.MLForecast(
            models={
                "lgbm": lightgbm.LGBMRegressor(verbosity=-1, n_estimators=20),
                "linear": LinearRegression(),
            },
            freq="D",
            lags=[1, 7],
        )
        frame = forecaster.cross_validation(
            series,
            n_windows=4,
            h=7,
            prediction_intervals=utils.PredictionIntervals(n_windows=4, h=7),
            level=[80, 90],
        )
    result = said("howsure.assess(frame)", frame=frame)
    for model in ("lgbm", "linear"):
        inside = (frame[f"{model}-lo-90"] <= frame["y"]) & (frame["y"] <= frame[f"{model}-hi-90"])
        found = result.record("empirical_coverage", coverage=0.9, model=model)
        assert found.value == pytest.approx(inside.mean())
        error = (frame["y"] - frame[model]).abs().mean()
        assert result.record("mae", model=model).value == pytest.approx(error)


def test_the_forecaster_with_gluonts_like_samples() -> None:
    rng = child(0, "personas", "gluonts")
    _, y = world("gluonts")
    samples = rng.normal(size=(100, N))  # (m, n), far too narrow: y has the spread of x besides
    result = said("howsure.assess(y, samples)", y=y, samples=samples)
    assert states(result)["coverage"] == "bad"
    explicit = said("howsure.assess(y, howsure.Samples(samples.T))", y=y, samples=samples)
    assert result.verdict == explicit.verdict
    darts = said("howsure.assess(y, values)", y=y, values=samples.T[:, None, :])
    assert darts.verdict == explicit.verdict


def test_the_owner_of_a_torch_network() -> None:
    torch = needs("torch")
    x, y = world("torch")
    mean = torch.tensor(2 * x[:, 0], requires_grad=True)
    predicted = torch.distributions.Normal(mean, torch.full((N,), 1.0, dtype=mean.dtype))
    result = said("howsure.assess(y, predicted)", y=torch.tensor(y), predicted=predicted)
    assert "bad" not in states(result).values()
    direct = howsure.assess(y, howsure.Distribution.normal(2 * x[:, 0], np.ones(N)))
    assert result.verdict == direct.verdict


def test_the_owner_of_a_polars_frame() -> None:
    polars = needs("polars")
    x, y = world("polars")
    half = 0.8  # of errors of sd 1: 58 % inside
    frame = polars.DataFrame(
        {
            "y": y,
            "pred": 2 * x[:, 0],
            "lower_90": 2 * x[:, 0] - half,
            "upper_90": 2 * x[:, 0] + half,
        }
    )
    result = said("howsure.assess(frame)", frame=frame)
    assert states(result)["coverage"] == "bad"
    assert result.value("empirical_coverage") == pytest.approx(
        (np.abs(y - 2 * x[:, 0]) <= half).mean()
    )


@pytest.mark.rate
def test_the_user_of_scoringutils_long_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scipy.stats import norm

    monkeypatch.chdir(tmp_path)
    x, y = world("scoringutils")
    levels = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
    lines = ["location,target_end_date,model,observed,quantile_level,predicted"]
    for model, sd in (("calm", 0.4), ("right", 1.0)):
        for row in range(N):
            for level in levels:
                value = 2 * x[row, 0] + sd * norm.ppf(level)
                unit = f"L{row % 20},2024-{1 + row // 20 % 12:02d}-{1 + row // 240:02d}"
                lines.append(f"{unit},{model},{float(y[row])},{level},{value}")
    child(0, "personas", "shuffled").shuffle(body := lines[1:])
    Path("long.csv").write_text("\n".join([lines[0], *body]), encoding="utf-8")
    result = commanded("howsure assess long.csv --series location -o long.json")
    assert result.returncode == 0, result.stdout + result.stderr
    findings = json.loads(Path("long.json").read_text(encoding="utf-8"))["findings"]
    found = {(f["model"], f["id"]): f["state"] for f in findings}
    assert found["calm", "coverage"] == "bad"
    assert found["right", "coverage"] != "bad"
    assert "✗ calm: The 95 % intervals cover" in " ".join(result.stdout.split())


@pytest.mark.rate
def test_the_judge_of_five_models_on_unequal_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = world("five models")
    rng = child(0, "personas", "five models, rows")
    for place, name in enumerate(("one", "two", "three", "four", "five")):
        rows = np.sort(rng.choice(N, N - 7 * place, replace=False))
        sd = 1.0 + 0.5 * place
        table = np.column_stack([rows, y[rows], 2 * x[rows, 0], np.full(len(rows), sd)])
        np.savetxt(
            f"{name}.csv", table, delimiter=",", header="id,y,mean,sd", comments="", fmt="%.10g"
        )
    refused = commanded("howsure assess one.csv two.csv three.csv four.csv five.csv")
    assert refused.returncode == 2
    assert "--common-rows" in refused.stderr
    result = commanded(
        "howsure assess one.csv two.csv three.csv four.csv five.csv --common-rows -o all.json"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    held = json.loads(Path("all.json").read_text(encoding="utf-8"))
    found = {(f["model"], f["id"]): f["state"] for f in held["findings"]}
    assert found["five", "spread"] == "bad"
    assert found["one", "spread"] != "bad"
    assert "one" in held["verdict"][0]["text"]  # the true model leads


@pytest.mark.rate
def test_the_keeper_of_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = world("gate", 2_000)
    for name, half in (("good", 1.645), ("bad", 1.2)):
        table = np.column_stack([y, 2 * x[:, 0] - half, 2 * x[:, 0] + half])
        np.savetxt(f"{name}.csv", table, delimiter=",", header="y,lower_90,upper_90", comments="")
    assert commanded("howsure check good.csv --min-coverage 0.87").returncode == 0
    assert commanded("howsure check bad.csv --min-coverage 0.87").returncode == 1
    assert commanded("howsure check bad.csv --min-coverage 87").returncode == 2
    from howsure.testing import assert_covers

    assert_covers(y, (2 * x[:, 0] - 1.645, 2 * x[:, 0] + 1.645), coverage=0.9)
    with pytest.raises(AssertionError, match=r"cover"):
        assert_covers(y, (2 * x[:, 0] - 1.2, 2 * x[:, 0] + 1.2), coverage=0.9)


def test_the_bayesian_with_arviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its next version
        arviz = needs("arviz")
    monkeypatch.chdir(tmp_path)
    rng = child(0, "personas", "arviz")
    x, y = world("arviz")
    drawn = 2 * x[:, 0] + 0.5 * rng.normal(size=(4, 100, N))  # half of the spread of y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = arviz.from_dict(posterior_predictive={"obs": drawn}, observed_data={"obs": y})
    idata.to_netcdf("fit.nc")
    result = said("howsure.assess(idata)", idata=idata)
    assert states(result)["coverage"] == "bad"
    beside = said("howsure.assess(y, idata)", y=y, idata=idata)
    alone = said("howsure.assess(y, drawn)", y=y, drawn=drawn)
    assert result.value("crps") == pytest.approx(beside.value("crps"))
    assert alone.value("crps") == pytest.approx(beside.value("crps"))
    assert "(chain 4, draw 100, obs_dim_0 400) read as 400 samples" in beside.facts["Reading"]
    told = commanded("howsure assess fit.nc -o fit.json")
    assert told.returncode == 0, told.stdout + told.stderr
    findings = json.loads(Path("fit.json").read_text(encoding="utf-8"))["findings"]
    assert {f["id"]: f["state"] for f in findings}["coverage"] == "bad"


def test_the_bayesian_with_numpyro() -> None:
    numpyro = needs("numpyro")
    jax, infer = (importlib.import_module(name) for name in ("jax", "numpyro.infer"))
    x, y = world("numpyro")

    def model(x: Any) -> None:
        slope = numpyro.sample("slope", numpyro.distributions.Normal(2.0, 0.01))
        numpyro.sample("obs", numpyro.distributions.Normal(slope * x, 0.5))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = infer.Predictive(model, num_samples=300, return_sites=["obs"])(
            jax.random.PRNGKey(0), x[:, 0]
        )
    result = said("howsure.assess(y, drawn)", y=y, drawn=drawn)
    assert states(result)["coverage"] == "bad"
    assert {record.model for record in result.records} == {"obs"}
    assert "of shape (300, 400) read as 300 samples per row" in result.facts["Reading"]


def test_the_econometrician_with_statsmodels() -> None:
    api = needs("statsmodels.api")
    (x, y), (new, truth) = world("statsmodels, fitted"), world("statsmodels")
    fit = api.OLS(y, api.add_constant(x)).fit()
    frame = fit.get_prediction(api.add_constant(new)).summary_frame(alpha=0.1)
    result = said("howsure.assess(y, frame, coverage=0.9)", y=truth, frame=frame)
    inside = (frame["obs_ci_lower"] <= truth) & (truth <= frame["obs_ci_upper"])
    assert result.value("empirical_coverage") == pytest.approx(inside.mean())
    assert states(result)["coverage"] != "bad"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecast = api.tsa.SARIMAX(y, exog=x, order=(0, 0, 0)).fit(disp=0).get_forecast(N, exog=new)
    table = forecast.summary_frame().assign(y=truth)
    with pytest.raises(howsure.HowsureError, match=r"may be intervals of the mean of y"):
        howsure.assess(table)
    normal = said("howsure.assess(howsure.load(table, mean='mean', sd='mean_se'))", table=table)
    assert states(normal)["coverage"] != "bad"


def test_the_forecaster_with_prophet() -> None:
    pd, prophet = needs("pandas"), needs("prophet")
    _, y = world("prophet")
    days = pd.date_range("2023-01-01", periods=N)
    frame = pd.DataFrame({"ds": days, "y": y})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = prophet.Prophet(weekly_seasonality=True, uncertainty_samples=200)
        forecast = model.fit(frame[: N // 2]).predict(frame[["ds"]][N // 2 :])
    truth = y[N // 2 :]
    beside = said("howsure.assess(y, forecast, coverage=0.8)", y=truth, forecast=forecast)
    inside = (forecast["yhat_lower"] <= truth) & (truth <= forecast["yhat_upper"])
    assert beside.value("empirical_coverage") == pytest.approx(inside.mean())
    assert "not read: trend, trend_lower, trend_upper" in beside.facts["Reading"]
    joined = frame.merge(forecast, on="ds")
    whole = said("howsure.assess(joined, coverage=0.8)", joined=joined)
    assert whole.value("empirical_coverage") == pytest.approx(inside.mean())
    with pytest.raises(howsure.HowsureError, match=r"pass coverage=0\.8, Prophet's default"):
        howsure.assess(truth, forecast)


def test_the_hydrologist_with_excel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openpyxl = needs("openpyxl")
    needs("python_calamine")
    monkeypatch.chdir(tmp_path)
    x, y = world("excel")
    days = np.arange("2024-01-01", N, dtype="datetime64[D]").astype(object)
    made = openpyxl.Workbook()
    for name, half in (("HBV", 1.645), ("GR4J", 0.8)):  # the second is too narrow
        sheet = made.create_sheet(name)
        sheet.append(["date", "observed", "lower_90", "upper_90"])
        for day, truth, mean in zip(days, y.tolist(), (2 * x[:, 0]).tolist(), strict=True):
            sheet.append([day.strftime("%d.%m.%Y"), truth, mean - half, mean + half])
    made.save("runoff.xlsx")
    refused = commanded("howsure assess runoff.xlsx")
    assert refused.returncode == 2
    assert "'HBV', 'GR4J'" in " ".join(refused.stderr.split())
    told = commanded("howsure assess runoff.xlsx#HBV runoff.xlsx#GR4J -o both.json")
    assert told.returncode == 0, told.stdout + told.stderr
    held = json.loads(Path("both.json").read_text(encoding="utf-8"))
    found = {(f["model"], f["id"]): f["state"] for f in held["findings"]}
    assert found["GR4J", "coverage"] == "bad"
    assert found["HBV", "coverage"] != "bad"
    alone = howsure.assess("runoff.xlsx#HBV")
    assert "dates are read day first, like 31.12.2025" in alone.facts["Reading"]


def test_the_trader_with_models_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = world("electricity prices")
    rng = child(0, "personas", "electricity prices, models")
    models = {f"DNN {k}": 2 * x[:, 0] + (k - 1) * rng.normal(size=N) for k in (1, 2)}
    held = {"Price": y.copy(), **models, "LEAR 56": np.zeros(N)}
    held["Price"][:3] = -9999
    lines = [",".join(f"{value:.6f}" for value in row) for row in zip(*held.values(), strict=True)]
    Path("prices.csv").write_text("\n".join([",".join(held), *lines]), encoding="utf-8")
    command = "howsure assess prices.csv --y Price --points DNN* -o prices.json"
    plain = commanded(command)
    assert "--missing-value -9999" in " ".join(plain.stdout.split())
    result = commanded(f"{command} --missing-value -9999 --missing drop")
    assert result.returncode == 0, result.stdout + result.stderr
    told = json.loads(Path("prices.json").read_text(encoding="utf-8"))
    assert {record["model"] for record in told["records"]} == {"DNN 1", "DNN 2"}
    assert "-9999 stands for a missing value: 3 cells ('Price' 3)" in told["facts"]["Reading"]


@pytest.mark.rate
def test_the_bayesian_with_pymc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pymc = needs("pymc")
    monkeypatch.chdir(tmp_path)
    (x, y), (new, truth) = world("pymc, fitted"), world("pymc")
    quiet: dict[str, Any] = {"progressbar": False, "random_seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pymc.Model() as model:
            inputs = pymc.Data("x", x[:, 0], dims="row")
            slope, sd = pymc.Normal("slope", 0.0, 5.0), pymc.HalfNormal("sd", 2.0)
            pymc.Normal("obs", slope * inputs, sd, observed=y, dims="row")
            fitted = pymc.sample(300, tune=300, chains=2, cores=1, **quiet)
            pymc.sample_posterior_predictive(fitted, extend_inferencedata=True, **quiet)
        with model:
            pymc.set_data({"x": new[:, 0]})
            foretold = pymc.sample_posterior_predictive(fitted, predictions=True, **quiet)
            bare = pymc.sample_posterior_predictive(fitted, return_inferencedata=False, **quiet)
    fitted.to_netcdf("fit.nc")
    seen = commanded("howsure assess fit.nc -o fit.json")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    told = json.loads(Path("fit.json").read_text(encoding="utf-8"))
    assert "a model looks better on these rows" in told["facts"]["Reading"]
    with pytest.raises(
        howsure.HowsureError, match=r"no group has their y.*howsure\.assess\(y, idata\)"
    ):
        howsure.assess(foretold)
    result = said("howsure.assess(y_new, idata)", y_new=truth, idata=foretold)
    assert "bad" not in states(result).values()
    drawn = np.asarray(foretold.predictions["obs"]).reshape(-1, N)
    inside = (np.quantile(drawn, 0.05, axis=0) <= truth) & (
        truth <= np.quantile(drawn, 0.95, axis=0)
    )
    assert result.value("empirical_coverage") == pytest.approx(inside.mean(), abs=0.02)
    arrays = said("howsure.assess(y_new, drawn)", y_new=truth, drawn={"obs": bare["obs"]})
    assert arrays.value("crps") == pytest.approx(result.value("crps"))
    wide = said("howsure.assess(y_new, idata)", y_new=1.8 * truth, idata=foretold)
    assert answer_of(wide).startswith("No. ")


def answer_of(result: Assessment) -> str:
    """The sentence that a person reads first."""
    return result.verdict.splitlines()[0]


def test_the_officer_for_fairness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    n = 1_500
    x, y = world("fairness", n)
    rng = child(0, "personas", "fairness, persons")
    age = rng.integers(18, 90, n)
    origin = np.array(["home", "abroad", "stateless"])[(rng.random(n) < 0.3).astype(int)]
    origin[:4] = "stateless"  # four people, whom their group would name
    y = np.where(origin == "abroad", 2 * x[:, 0] + 2.2 * (y - 2 * x[:, 0]), y)
    lines = ["name,claim,pred,lower_90,upper_90,age,origin"]
    lines += [
        f"Resident {row:04d},{y[row]:.3f},{2 * x[row, 0]:.3f},{2 * x[row, 0] - 1.645:.3f},"
        f"{2 * x[row, 0] + 1.645:.3f},{age[row]},{origin[row]}"
        for row in range(n)
    ]
    Path("claims.csv").write_text("\n".join(lines), encoding="utf-8")
    columns = "--y claim --row-id name --features age --groups origin"
    result = commanded(f"howsure assess claims.csv {columns} --no-rows -o fair.html -o fair.json")
    assert result.returncode == 0, result.stdout + result.stderr
    told = json.loads(Path("fair.json").read_text(encoding="utf-8"))
    found = re.fullmatch(
        r"No\. The 90 % intervals cover \d\d\.\d %; "
        r"coverage is (\d\d\.\d) % in origin=abroad and others\.",
        told["answer"]["sentence"],
    )
    assert found is not None
    foreign = np.abs(y - 2 * x[:, 0])[origin != "home"] <= 1.645
    assert float(found[1]) == pytest.approx(100 * foreign.mean(), abs=0.3)  # ends are rounded
    written = result.stdout + Path("fair.html").read_text(encoding="utf-8") + json.dumps(told)
    assert "Resident " not in written
    assert "stateless" not in written
    stopped = commanded(
        f"howsure check claims.csv {columns} --by origin --min-coverage 0.85 --no-rows"
    )
    assert stopped.returncode == 1
    assert "✗  claims: origin=abroad and others: empirical_coverage ≥ 0.85" in stopped.stdout
    assert "stateless" not in stopped.stdout


def test_the_clinician_with_label_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    from sklearn.linear_model import LogisticRegression

    rng = child(0, "personas", "clinician")
    names = np.array(["asthma", "copd", "heart_failure"])

    def patients(n: int) -> tuple[Array, Array]:
        illness = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        centres = np.array([[0.0, 0.0], [1.2, 0.4], [0.6, 1.4]])
        return centres[illness] + rng.normal(size=(n, 2)), illness

    (x, illness), (kept, known), (new, truth) = patients(600), patients(2_000), patients(900)
    model = LogisticRegression().fit(x, illness)

    def write(name: str, features: Array, labels: Array) -> None:
        head = "patient,y," + ",".join(f"p_{each}" for each in names)
        lines = [
            f"p{row},{names[label]}," + ",".join(f"{p:.12g}" for p in chances)
            for row, (label, chances) in enumerate(
                zip(labels, model.predict_proba(features), strict=True)
            )
        ]
        Path(name).write_text("\n".join([head, *lines]), encoding="utf-8")

    write("held_out.csv", kept, known)
    write("ward.csv", new, truth)
    made = commanded(
        "howsure conformal ward.csv --calibration held_out.csv --method lac -o sets.csv"
    )
    assert made.returncode == 0, made.stdout + made.stderr
    told = commanded("howsure assess sets.csv --row-id patient -o sets.json")
    assert told.returncode == 0, told.stdout + told.stderr
    answer = json.loads(Path("sets.json").read_text(encoding="utf-8"))["answer"]
    sets = [line.split(",") for line in Path("sets.csv").read_text().splitlines()[1:]]
    held = np.array([line[1] in line[-1].split("|") for line in sets])
    assert f"the 90 % sets cover {100 * held.mean():.1f} %" in answer["sentence"]
    claimed = commanded("howsure assess ward.csv --row-id patient --coverage 0.9 -o ward.json")
    assert claimed.returncode == 0, claimed.stdout + claimed.stderr  # the likeliest that reach 90 %
    sizes = {}
    for name in ("ward", "sets"):
        records = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))["records"]
        sizes[name] = next(r["value"] for r in records if r["metric"] == "set_size")
    assert sizes["sets"] < sizes["ward"]
    assert sizes["sets"] == pytest.approx(np.mean([len(line[-1].split("|")) for line in sets]))


def test_the_reader_of_intervals_that_a_language_model_states() -> None:
    pd = needs("pandas")
    rng = child(0, "personas", "language model")
    lines = []
    for question in range(300):
        size = rng.normal(4.0, 2.0)  # answers of very different sizes, asked for 90 % intervals
        middle, half = size + 0.6 * rng.normal(), 0.45
        lines.append(
            {
                "question": question,
                "topic": ["distance", "year", "price"][question % 3],
                "answer": math.exp(size),
                "best": math.exp(middle),
                "low": math.exp(middle - half),
                "high": math.exp(middle + half),
            }
        )
    stated = pd.read_json(io.StringIO("\n".join(map(json.dumps, lines))), lines=True)
    with pytest.raises(
        howsure.HowsureError, match=r"name it with .*y=COLUMN.*'answer', 'best', 'low', 'high'"
    ):
        howsure.assess(stated)
    columns = {"y": "answer", "point": "best", "lower": "low", "upper": "high", "groups": "topic"}
    loaded = howsure.load(stated, **columns, coverage=0.9)
    result = said("howsure.assess(loaded)", loaded=loaded)
    inside = (stated.low <= stated.answer) & (stated.answer <= stated.high)
    assert answer_of(result) == f"No. The 90 % intervals cover {100 * inside.mean():.3g} %."
    assert states(result)["groups"] != "bad"  # it errs alike in all topics
    assert result.record("interval_score", coverage=0.9).group == ""


def test_the_ecologist_with_tidybayes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = world("tidybayes")
    lines = [".row,species,y,.prediction,.lower,.upper,.width,.point,.interval"]
    for width, z in ((0.5, 0.674), (0.9, 1.645)):
        for row in range(N):
            mean = 2 * x[row, 0]
            cells = (f"{mean - 0.7 * z:.4f}", f"{mean + 0.7 * z:.4f}", width, "median", "qi")
            kind = ("larch", "pine")[row % 2]
            lines.append(f"{row + 1},{kind},{y[row]:.4f},{mean:.4f}," + ",".join(map(str, cells)))
    Path("tidy.csv").write_text("\n".join(lines), encoding="utf-8")
    result = commanded("howsure assess tidy.csv --groups species -o tidy.json")
    assert result.returncode == 0, result.stdout + result.stderr
    told = json.loads(Path("tidy.json").read_text(encoding="utf-8"))
    inside = np.abs(y - 2 * x[:, 0]) <= 0.7 * 1.645
    assert told["answer"]["sentence"] == (
        f"No. The 90 % intervals cover {100 * inside.mean():.1f} %."
    )
    assert "read as intervals at 50 % and 90 %, 800 rows as 400 cases" in told["facts"]["Reading"]
