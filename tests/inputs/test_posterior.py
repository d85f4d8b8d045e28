"""Draws of ArviZ and xarray: read as the matrix that NumPy makes of them, or refused with a way."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import load
from howsure.inputs.given import read_given

CHAINS, DRAWS, N = 2, 7, 12
RNG = child(0, "posterior")
Y = RNG.normal(size=N)
PPC = RNG.normal(size=(CHAINS, DRAWS, N))
SAMPLES = PPC.transpose(2, 0, 1).reshape(N, CHAINS * DRAWS)


def arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its next version at each import
        return needs("arviz")


def inference(**groups: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return arviz().from_dict(**groups)


def whole(**more: Any) -> Any:
    return inference(
        posterior={"mu": PPC[..., 0]},
        posterior_predictive={"demand": PPC},
        observed_data={"demand": Y},
        **more,
    )


def samples_of(value: Any, n: int = N) -> np.ndarray[Any, Any]:
    (given,) = read_given(value, n=n).values()
    (held,) = given.predictions
    assert isinstance(held, howsure.Samples)
    return np.asarray(held.sorted_samples)


def test_chains_of_draws_in_a_bare_array() -> None:
    (given,) = read_given(PPC, n=N).values()
    assert np.array_equal(given.predictions[0].sorted_samples, np.sort(SAMPLES, axis=1))
    assert given.notes == (
        "prediction of shape (2, 7, 12) read as 2 chains of 7 draws: prediction.reshape(-1, "
        "12).T, 14 samples per row",
    )
    named = read_given({"demand": PPC}, n=N)  # as PyMC gives them
    assert np.array_equal(
        named["demand"].predictions[0].sorted_samples, given.predictions[0].sorted_samples
    )
    flat = read_given({"demand": PPC.reshape(-1, N)}, n=N)  # as NumPyro does
    assert np.array_equal(
        flat["demand"].predictions[0].sorted_samples, given.predictions[0].sorted_samples
    )


def test_chains_as_many_as_rows_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be interpreted"):
        read_given(np.zeros((N, 5, N)), n=N)


def test_a_tree_a_file_and_inference_data_are_one_table(tmp_path: Path) -> None:
    xarray = needs("xarray")
    dims = {"demand": ["day"], "x": ["day"]}
    data = whole(constant_data={"x": np.arange(N, dtype=float)}, dims=dims)
    path = tmp_path / "fit.nc"
    data.to_netcdf(str(path))
    groups = {name: data[name] for name in data.groups()}
    for source in (data, xarray.DataTree.from_dict(groups), path, str(path)):
        loaded = load(source)
        (held,) = loaded.evalsets
        assert np.array_equal(held.y, Y)
        assert np.allclose(held.predictions[0].sorted_samples, np.sort(SAMPLES, axis=1))
        assert np.array_equal(held.features["x"], np.arange(N))
        told = loaded.facts["Reading"]
        assert "(chain 2, draw 7, day 12) read as 14 samples of each of 12 rows" in told
        assert "a model looks better on these rows" in told
    assert load(path).evalsets[0].model == "fit"


@pytest.mark.parametrize("turn", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_dimensions_come_in_any_order(turn: tuple[int, ...]) -> None:
    xarray = needs("xarray")
    dims = np.array(["chain", "draw", "day"])[list(turn)]
    array = xarray.DataArray(PPC.transpose(turn), dims=list(dims), name="demand")
    got = np.sort(samples_of(array), axis=1)
    assert np.allclose(got, np.sort(SAMPLES, axis=1))
    assert np.allclose(np.sort(samples_of(array.to_dataset()), axis=1), got)
    mean = array.rename("mu")
    with pytest.raises(InputError, match=r"'mu' may contain draws of the mean of y.*rename\('y'\)"):
        samples_of(mean)
    assert np.allclose(np.sort(samples_of(mean.rename("y")), axis=1), got)


def test_what_extract_makes_is_read_too() -> None:
    drawn = arviz().extract(whole(), group="posterior_predictive", var_names="demand")
    assert drawn.dims[-1] == "sample"
    assert np.allclose(np.sort(samples_of(drawn), axis=1), np.sort(SAMPLES, axis=1))


def test_an_outcome_of_two_dimensions_is_a_row_a_cell() -> None:
    y, drawn = Y.reshape(3, 4), PPC.reshape(CHAINS, DRAWS, 3, 4)
    data = inference(
        posterior_predictive={"demand": drawn},
        observed_data={"demand": y},
        coords={"shop": ["a", "b", "c"]},
        dims={"demand": ["shop", "day"]},
    )
    loaded = load(data, groups="shop")
    (held,) = loaded.evalsets
    assert np.array_equal(held.y, Y)
    assert np.allclose(held.predictions[0].sorted_samples, np.sort(SAMPLES, axis=1))
    assert held.groups["shop"].values().tolist() == ["a"] * 4 + ["b"] * 4 + ["c"] * 4


def test_draws_for_new_rows_are_told_from_those_of_old_ones_by_their_number() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = whole()
        data.add_groups(predictions={"demand": PPC[..., :5]})
    assert samples_of(data, n=5).shape == (5, CHAINS * DRAWS)
    assert samples_of(data, n=N).shape == (N, CHAINS * DRAWS)
    with pytest.raises(InputError, match=r"none has them: posterior_predictive\['demand'\] has"):
        read_given(data, n=7)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"posterior": {"mu": PPC}}, "no group posterior_predictive .groups: 'posterior'."),
        (
            {"predictions": {"a": PPC}},
            "no group has their y .groups: 'predictions'.*give it",
        ),
        ({"posterior_predictive": {"a": PPC}}, "no group observed_data"),
        (
            {"posterior_predictive": {"a": PPC}, "observed_data": {"b": Y}},
            "a variable must be in both observed_data and posterior_predictive, got 'b' and 'a'",
        ),
        (
            {
                "posterior_predictive": {"a": PPC, "b": PPC[..., :4]},
                "observed_data": {"a": Y, "b": Y[:4]},
            },
            "several outcomes were observed: 'a' 12, 'b' 4 rows",
        ),
    ],
)
def test_what_a_group_lacks_is_said(groups: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(inference(**groups))


def test_one_of_several_outcomes_is_chosen_by_its_columns() -> None:
    data = inference(
        posterior_predictive={"a": PPC, "b": PPC + 1}, observed_data={"a": Y, "b": Y + 1}
    )
    (held,) = load(data, y="b", samples="b.*").evalsets
    assert np.array_equal(held.y, Y + 1)
    assert np.allclose(held.predictions[0].sorted_samples, np.sort(SAMPLES + 1, axis=1))
    with pytest.raises(InputError, match="prediction must be of one variable, got 'a', 'b'"):
        read_given(data.posterior_predictive, n=N)


def test_missing_rows_are_left_out_before() -> None:
    with pytest.raises(InputError, match="drop them from prediction before"):
        howsure.assess(howsure.Table(np.append(Y[1:], np.nan), whole(), missing="drop"))


@pytest.mark.parametrize(
    "content", [b"", b"CDF\x01 old", b"\x89HDF\r\n\x1a\nbroken", b"y,z\n1,2\n"]
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    needs("xarray")
    path = tmp_path / "broken.nc"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.nc"):
        load(path)


def test_without_the_library_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    path = tmp_path / "fit.nc"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(howsure.HowsureError, match=r'pip install "howsure\[netcdf\]"'):
        load(path)


def test_a_command_reads_the_file(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from howsure.cli.main import app

    path = tmp_path / "fit.nc"
    whole().to_netcdf(str(path))
    result = CliRunner().invoke(app, ["assess", str(path), "--explain-input"])
    assert result.exit_code == 0, result.output
    assert "sample_01" in result.output


def test_chains_of_unequal_length_are_told_so() -> None:
    short = PPC.copy()
    short[1, 5:] = np.nan  # as xarray fills up what is shorter
    data = inference(posterior_predictive={"demand": short}, observed_data={"demand": Y})
    rule = r"posterior_predictive\['demand'\] must not contain missing draws; 2 of 14 .*unequal"
    with pytest.raises(InputError, match=rule):
        load(data)
    with pytest.raises(InputError, match=r"prediction 'demand' must not contain missing draws; 2"):
        read_given(data, n=N)
    with pytest.raises(
        InputError, match=r"one rectangular array, got arrays of shapes \(7, 12\), \(5, 12\)"
    ):
        read_given([PPC[0], PPC[1, :5]], n=N)


def test_draws_of_other_rows_than_were_observed_are_refused() -> None:
    data = inference(posterior_predictive={"demand": PPC[..., :5]}, observed_data={"demand": Y})
    rule = r"must have draws of the 12 rows of observed_data, got chain 2, draw 7, demand_dim_0 5"
    with pytest.raises(InputError, match=rule):
        load(data)


def test_netcdf_without_groups_is_told_what_it_lacks(tmp_path: Path) -> None:
    xarray = needs("xarray")
    path = tmp_path / "grid.nc"
    xarray.Dataset({"t": ("time", Y)}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=r"no groups of ArviZ"):
        load(path)
