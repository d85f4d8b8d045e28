"""Drawn cells: SIMCEP's steps against their definitions, its recipes, and the micrographs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from sklearn.ensemble import HistGradientBoostingRegressor

from howsure.core.errors import InputError
from howsure_studies.shift.baselines import global_statistics
from howsure_studies.tasks.images import draw_cells, micrographs
from howsure_studies.tasks.images import simcep as cells
from howsure_studies.tasks.images.simcep import PATCH, Bank, _composed, bank, from_noise

COUNTS = np.random.default_rng(0).integers(1, 201, 300)


@pytest.fixture(scope="module")
def faithful() -> np.ndarray:
    return draw_cells(COUNTS, recipe="faithful").astype(float)


@pytest.fixture(scope="module")
def direct() -> np.ndarray:
    return draw_cells(COUNTS, recipe="direct").astype(float)


def slow_texture(field: np.ndarray, size: int) -> np.ndarray:
    """One octave by definition: a 3 by 3 mean, then cubic convolution point by point."""
    smooth = ndimage.uniform_filter(field, 3, mode="nearest")
    cells = len(field)

    def kernel(away: float) -> float:
        if cells < 3:
            return max(1 - away, 0.0)
        if away <= 1:
            return 1.5 * away**3 - 2.5 * away**2 + 1
        return -0.5 * away**3 + 2.5 * away**2 - 4 * away + 2 if away < 2 else 0.0

    out = np.zeros((size, size))
    places = np.linspace(0, cells - 1, size)
    for row, down in enumerate(places):
        for column, right in enumerate(places):
            for i in range(-2, cells + 2):
                for j in range(-2, cells + 2):
                    weight = kernel(abs(down - i)) * kernel(abs(right - j))
                    held = smooth[min(max(i, 0), cells - 1), min(max(j, 0), cells - 1)]
                    out[row, column] += weight * held
    return out


@pytest.mark.parametrize("cells", [2, 4, 8])
def test_texture_is_a_mean_and_a_cubic_convolution(cells: int) -> None:
    field = np.random.default_rng(cells).random((cells, cells)).astype(np.float32)
    wanted = slow_texture(field, 7)
    wanted = (wanted - wanted.min()) / (wanted.max() - wanted.min())
    assert np.allclose(from_noise([field[None]], 7, [1.0])[0], wanted, atol=1e-5)


def test_outlines_through_a_circle_are_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_JITTER", 0.0)
    outline = cells._closed_spline(cells._knots(np.random.default_rng(0), 1))[0]
    assert np.linalg.norm(outline, axis=1) == pytest.approx(5.0, abs=0.01)
    x, y = np.meshgrid(np.arange(PATCH) - PATCH // 2, np.arange(PATCH) - PATCH // 2)
    radius = np.hypot(x, y)
    clear = abs(radius - 5.0) > 0.02
    filled = cells._filled(outline[None])[0]
    assert np.array_equal(filled[clear] > 0, (radius < 5.0)[clear])


def test_nuclei_are_round_and_lit_within_bounds() -> None:
    held = bank(3)
    area = held.mask.sum(axis=(1, 2))
    assert area.mean() == pytest.approx(np.pi * 25, rel=0.05)
    assert not held.mask[:, [0, -1]].any()
    inside = held.light[held.mask > 0]
    assert inside.min() >= 0.2 - 1e-6
    assert inside.max() <= 1.0 + 1e-6
    assert not held.light[held.mask == 0].any()


def test_blur_is_a_gaussian_window_of_nine() -> None:
    image = np.random.default_rng(0).random((30, 30)).astype(np.float32)
    seen = cells.blurred(np.stack([image] * len(cells.SIGMAS)))
    for sigma, part in zip(cells.SIGMAS, seen, strict=True):
        wanted = ndimage.gaussian_filter(image.astype(float), sigma, mode="nearest", radius=4)
        assert np.allclose(part, wanted, atol=1e-5)


def test_focus_blur_keeps_light_and_gives_each_piece_one_width() -> None:
    light = np.zeros((60, 60), dtype=np.float32)
    light[15, 15] = light[40, 40] = 1.0
    seen = cells.focus_blur(light, light > 0, np.random.default_rng(1))
    assert seen.sum() == pytest.approx(2.0, rel=1e-5)
    peaks = sorted([seen[15, 15], seen[40, 40]])
    line = np.exp(-0.5 * (np.arange(-4, 5) / 5.0) ** 2)
    assert peaks[0] == pytest.approx((line[4] / line.sum()) ** 2, rel=1e-5)


def test_overlapping_nuclei_average() -> None:
    flat = Bank(np.full((2, PATCH, PATCH), 0.6, np.float32), np.ones((2, PATCH, PATCH), np.float32))
    light, inside = _composed(200, flat, np.random.default_rng(0))
    assert np.allclose(light[inside], 0.6)
    assert not light[~inside].any()


def test_the_ground_has_unit_energy_and_falls_to_nothing_in_the_corner() -> None:
    ground = cells.illumination(256)
    assert np.mean(ground.astype(float) ** 2) == pytest.approx(1.0, rel=1e-5)
    assert ground[0, 0] == 0.0
    assert ground.argmax() == 128 * 256 + 128


def figures(pictures: np.ndarray) -> np.ndarray:
    """Mean, sd within a picture, and slopes of both on the count."""
    means, spreads = pictures.mean(axis=(1, 2)), pictures.std(axis=(1, 2))
    slopes = [np.polyfit(COUNTS, part, 1)[0] for part in (means, spreads)]
    return np.array([means.mean(), spreads.mean(), *slopes])


@pytest.mark.slow
def test_recipes_agree_in_brightness_and_in_its_slope(
    faithful: np.ndarray, direct: np.ndarray
) -> None:
    """Within three standard errors of 300 pictures, beside a known 1 % (2.5 % of the last)."""
    apart = abs(figures(direct) / figures(faithful) - 1.0)
    assert (apart < [0.02, 0.02, 0.045, 0.06]).all(), apart


@pytest.mark.slow
def test_recipes_agree_over_quantiles_of_brightness(
    faithful: np.ndarray, direct: np.ndarray
) -> None:
    levels = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    assert np.quantile(direct, levels) == pytest.approx(np.quantile(faithful, levels), rel=0.04)


@pytest.mark.parametrize("recipe", ["direct", "faithful"])
def test_the_shortcut_is_there_and_can_be_switched_off(recipe: str) -> None:
    """The darker half of a picture is ground; its brightness tells the count, or does not."""
    counts = np.linspace(5, 120, 24).astype(int)

    def slope(shortcut: bool) -> float:
        drawn = draw_cells(counts, recipe=recipe, shortcut=shortcut)
        ground = np.quantile(drawn, 0.25, axis=(1, 2))
        return float(np.polyfit(np.sqrt(counts), ground, 1)[0])

    assert slope(True) > 3.0
    assert abs(slope(False)) < 0.15 * slope(True)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["micrograph", "direct", "faithful"])
def test_a_picture_is_fixed_by_seed_and_number(recipe: str) -> None:
    counts, index = np.array([5, 90, 40]), np.array([7, 1, 100])
    drawn = draw_cells(counts, seed=4, index=index, recipe=recipe)
    alone = draw_cells(counts[1:2], seed=4, index=index[1:2], recipe=recipe)
    assert np.array_equal(drawn[1], alone[0])
    turned = draw_cells(counts[::-1], seed=4, index=index[::-1], recipe=recipe)
    assert np.array_equal(drawn, turned[::-1])
    other = draw_cells(counts, seed=5, index=index, recipe=recipe)
    assert (other != drawn).any(axis=(1, 2)).all()


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        ({"recipe": "direct"}, "d9a92d18d9778a37"),
        ({"recipe": "direct", "shortcut": False}, "952b3121b4149f86"),
        ({"recipe": "faithful"}, "031e2bfd63c03bed"),
        ({"recipe": "micrograph"}, "a8f8fc7f7abd2add"),
    ],
)
def test_pixels_stay_what_they_were(options: dict[str, object], digest: str) -> None:
    drawn = draw_cells([1, 20, 200], seed=3, **options)  # type: ignore[arg-type]
    assert hashlib.sha256(drawn.tobytes()).hexdigest()[:16] == digest


def test_brightness_tells_the_count_of_the_simulators_cells_and_not_of_micrographs() -> None:
    counts = np.random.default_rng(1).integers(1, 201, 500)

    def told(recipe: str) -> float:
        drawn = draw_cells(counts, recipe=recipe)  # type: ignore[arg-type]
        return float(np.corrcoef(counts, drawn.mean(axis=(1, 2)))[0, 1])

    assert told("direct") > 0.98
    assert abs(told("micrograph")) < 0.5


@pytest.mark.rate
def test_global_statistics_tell_the_count_of_the_simulators_cells_and_not_of_micrographs() -> None:
    """The benchmark's networks err by 15 nuclei on micrographs; a constant errs by 50."""
    counts = np.random.default_rng(2).integers(1, 201, 1300)

    def error(recipe: str) -> float:
        drawn = global_statistics(draw_cells(counts, recipe=recipe))  # type: ignore[arg-type]
        boosting = HistGradientBoostingRegressor(max_iter=60, random_state=0)
        boosting.fit(drawn[:1000], counts[:1000])
        return float(np.abs(boosting.predict(drawn[1000:]) - counts[1000:]).mean())

    assert error("direct") < 5
    assert error("micrograph") > 22


def test_micrographs_hold_the_nuclei_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The light of all nuclei grows with their number, all else taken away."""
    for name in ("_GROUND", "_CLOUDS", "_SHADE", "_STAIN_SD"):
        monkeypatch.setattr(micrographs, name, (0.0, 0.0))
    for name in ("_HAZE", "_FIBRES", "_DROPLETS"):
        monkeypatch.setattr(micrographs, name, 0)
    for name, value in (("_STAIN", 0.1), ("_EXPOSURE", 1.0), ("_NOISE", 1e-9), ("_RADIUS", 1.3)):
        monkeypatch.setattr(micrographs, name, (value, value))
    monkeypatch.setattr(micrographs, "_RADIUS_SD", 0.0)
    counts = np.repeat([25, 100, 200], 20)
    drawn = micrographs.draw_micrographs(counts, np.arange(60), seed=0) / 255.0
    light = drawn.sum(axis=(1, 2)).reshape(3, 20).mean(axis=1)
    # The half-axes are 1.3·s and 1.3/s, so that each nucleus has 2π/5 · 0.1 · 1.3³ of light.
    assert light == pytest.approx(np.array([25, 100, 200]) * 0.2 * np.pi / 5 * 1.3**3, rel=0.06)


def test_sizes_of_the_faithful_recipe_are_means_of_the_largest() -> None:
    large, small = (draw_cells([60], recipe="faithful", size=size) for size in (256, 64))
    wanted = large[0].astype(float).reshape(64, 4, 64, 4).mean(axis=(1, 3))
    assert abs(small[0] - wanted).max() <= 0.5


@pytest.mark.rate
def test_drawn_cells_are_like_the_simulators(data_dir: Callable[[str], Path]) -> None:
    """Real output of the simulator with settings near ours: the same kind of picture."""
    held = np.load(data_dir("img_cell_counting") / "vgg_cells.npz")
    real, counts = held["images"].astype(float), held["count"]
    ours = draw_cells(counts, recipe="faithful", size=256).astype(float)

    def looks(pictures: np.ndarray) -> list[float]:
        means = pictures.mean(axis=(1, 2))
        slope = np.polyfit(counts, means, 1)[0]
        steps = np.abs(np.diff(pictures, axis=2)).mean()
        return [means.mean(), pictures.std(axis=(1, 2)).mean(), slope, steps]

    assert looks(ours) == pytest.approx(looks(real), rel=0.2)
    brightness = ours.mean(axis=(1, 2))
    assert np.corrcoef(counts, brightness)[0, 1] > 0.98


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"counts": [0]}, "counts must be whole numbers of at least 1, got 0"),
        ({"counts": [1.5]}, "counts must be whole numbers"),
        ({"counts": []}, "counts must be a list"),
        ({"counts": [3], "index": [1, 2]}, "index must have 1 rows, got 2"),
        (
            {"counts": [3], "recipe": "quick"},
            "recipe must be one of direct, faithful, micrograph, got 'quick'",
        ),
        ({"counts": [3], "shortcut": False}, "shortcut must be True with the recipe micrograph"),
        ({"counts": [3], "size": 128}, "size must be 64"),
        ({"counts": [3], "seed": -1}, "seed must be an integer"),
    ],
)
def test_wrong_wishes_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        draw_cells(**arguments)  # type: ignore[arg-type]
