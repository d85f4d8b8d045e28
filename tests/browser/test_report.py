"""The report in a real browser: what a reader sees, clicks, tabs through and prints."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from browser.pages import HOSTILE
from figures import samples
from howsure.core.records import Record, ResultTable
from howsure.report.document import Document, GlossaryEntry, VerdictLine
from howsure.report.questions import document_of

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
SETTLED = """() => [...document.querySelectorAll(".plot")].every((plot) =>
    !plot.clientWidth || plot.matches(".drawn[data-seen=true]"))"""
FIGURES = 13
"""Figures of `samples.content`."""

Open = Callable[..., tuple[Any, Any]]


def unfold(page: Any) -> None:
    """Open every fold but the data of figures, and wait for the figures inside."""
    page.evaluate("document.querySelectorAll('details:not(.data)').forEach((d) => d.open = true)")
    page.wait_for_function(SETTLED)


def shown_marks(page: Any) -> dict[str, int]:
    """How many marks each drawing in sight holds, the unseen ones for hovering left out."""
    counts: dict[str, int] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".plot")]
            .filter((plot) => plot.checkVisibility()).map((plot) => [plot.dataset.spec,
            [...plot.querySelectorAll("[class^='mark-'] > *")].filter((mark) => {
              const box = mark.getBoundingClientRect();
              const group = mark.parentElement.getAttribute("class");
              return /layer_\\d+_marks/.test(group)
                && mark.getAttribute("opacity") !== "0" && box.width + box.height > 1;
            }).length]))"""
    )
    return counts


def every_mark(page: Any) -> dict[str, int]:
    """The same of every drawing, as a reader unfolds and switches to it."""
    unfold(page)
    counts = shown_marks(page)
    for other in page.locator(".switch label:has(input:not(:checked))").all():
        other.click()
        page.wait_for_function(SETTLED)
        counts |= shown_marks(page)
    return counts


def test_every_figure_is_drawn_and_none_is_empty(opened: Open) -> None:
    page, _ = opened(samples.content())
    counts = every_mark(page)
    assert len(counts) == page.locator(".plot").count() == FIGURES
    assert all(count >= 2 for count in counts.values()), counts
    boxes = page.eval_on_selector_all(
        ".plot svg",
        """all => all.filter((one) => one.checkVisibility())
            .map((one) => one.getBoundingClientRect().toJSON())""",
    )
    assert all(box["width"] > 300 and box["height"] > 90 for box in boxes)


def test_figures_of_several_models_are_drawn(opened: Open) -> None:
    page, _ = opened(samples.several_models())
    legend = page.locator("figure .legend").first.inner_text()
    assert legend.split("\n")[:3] == ["boosted trees", "linear", "deep"]
    counts = every_mark(page)
    assert all(count >= 3 for count in counts.values()), counts


def test_the_verdict_is_in_sight_at_once(opened: Open) -> None:
    for viewport in (DESK, PHONE):
        page, _ = opened(samples.content(), viewport=viewport)
        box = page.locator(".headline").bounding_box()
        assert box["y"] + box["height"] < viewport["height"]


def column(page: Any, table: Any, place: int) -> list[str]:
    """The texts of one column."""
    texts: list[str] = table.locator(f"tbody tr:not(.part) > :nth-child({place})").all_inner_texts()
    return [text.strip() for text in texts]


def as_number(text: str) -> float:
    """What a cell of numbers says."""
    return float(text.replace("−", "-").replace(",", ""))


def table_named(page: Any, title: str) -> Any:
    """The table under a heading."""
    return page.locator(".table-block").filter(has=page.get_by_role("heading", name=title))


def test_a_click_sorts_numbers_as_numbers_and_a_second_turns_the_order(opened: Open) -> None:
    page, _ = opened(samples.content())
    unfold(page)
    table = table_named(page, "The worst rows")
    button = table.get_by_role("button", name="y", exact=True)
    head = table.get_by_role("columnheader", name="y", exact=True)
    before = [as_number(text) for text in column(page, table, 3)]
    button.click()
    assert [as_number(text) for text in column(page, table, 3)] == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    button.click()
    assert [as_number(text) for text in column(page, table, 3)] == sorted(before, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    rows = {tuple(row.split("\t")) for row in table.locator("tbody tr").all_inner_texts()}
    assert len(rows) == len(before)


def test_tables_sort_by_keyboard(opened: Open) -> None:
    page, _ = opened(samples.content())
    unfold(page)
    table = table_named(page, "Coverage by group")
    before = column(page, table, 1)
    table.get_by_role("button", name="Group", exact=True).focus()
    page.keyboard.press("Enter")
    assert column(page, table, 1) == sorted(before)
    page.keyboard.press("Space")
    assert column(page, table, 1) == sorted(before, reverse=True)
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == "n"


def test_missing_numbers_stay_last_both_ways(opened: Open) -> None:
    values = np.array([3.0, np.nan, 1.0, 2.0])
    page, _ = opened(
        document_of(title="t", tables=[ResultTable(name="map", columns={"value": values})])
    )
    unfold(page)
    table = table_named(page, "Map")
    for wanted in (["1", "2", "3", "–"], ["3", "2", "1", "–"]):
        table.get_by_role("button").click()
        assert column(page, table, 1) == wanted


def test_numbers_are_sorted_within_their_questions(opened: Open) -> None:
    page, _ = opened(samples.several_models())
    unfold(page)
    numbers = table_named(page, "All numbers")
    parts = numbers.locator("tbody").count()
    assert parts > 2
    numbers.get_by_role("button", name="linear", exact=True).click()
    assert numbers.locator("tbody").count() == parts
    for place in range(parts):
        body = numbers.locator("tbody").nth(place)
        assert body.locator("tr").first.get_attribute("class") == "part"
        keys = body.locator("tr:not(.part)").evaluate_all(
            "all => all.map((row) => row.cells[2].dataset.key).filter(Boolean).map(Number)"
        )
        assert keys == sorted(keys)


def test_a_filter_keeps_the_rows_that_contain_a_text(opened: Open) -> None:
    page, _ = opened(document_of(title="t", tables=[samples.groups(60)]))
    unfold(page)
    table = table_named(page, "Coverage by group")
    table.get_by_role("searchbox").fill("midlands")
    assert table.locator("tbody tr:visible").count() == 1
    assert table.get_by_role("status").inner_text() == "1 of 60"
    table.get_by_role("searchbox").fill("")
    assert table.locator("tbody tr:visible").count() == 60


def test_tab_reaches_every_control_in_the_order_of_the_page(opened: Open) -> None:
    page, _ = opened(samples.content())
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")]
            .filter((one) => one.checkVisibility() && !one.matches("[type=radio]:not(:checked)"))
            .map((one, place) => {
              one.dataset.place = place;
              return one.outerHTML.slice(0, 80);
            })"""
    )
    reached: list[int] = []
    for _step in range(len(wanted)):
        page.keyboard.press("Tab")
        reached.append(int(page.evaluate("document.activeElement.dataset.place ?? -1")))
    assert reached == list(range(len(wanted)))
    assert len(wanted) > 25


def test_focus_is_visible_on_every_kind_of_control(opened: Open) -> None:
    page, _ = opened(samples.content())
    page.keyboard.press("Tab")
    shown = """(one) => getComputedStyle(
        one.matches("input") ? one.nextElementSibling : one).outlineStyle"""
    for selector in (
        "nav a",
        "#theme",
        ".switch input",
        "summary",
        ".states a",
        ".scroll",
        ".plot",
    ):
        if selector == ".scroll":
            page.locator("details.data summary").first.press("Enter")
        control = page.locator(selector).locator("visible=true").first
        control.focus()
        assert control.evaluate(shown) == "solid", selector


def hover(page: Any, plot: Any, across: float, down: float) -> dict[str, str]:
    """What the hover text says at a place of a drawing."""
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    x, y = box["x"] + box["width"] * across, box["y"] + box["height"] * down
    page.mouse.move(x, y)
    page.mouse.move(x + 2, y + 1)
    page.locator("#tip").wait_for(state="visible")
    pairs = "() => [...document.querySelectorAll('#tip dt')].map((one) => " + (
        "[one.innerText, one.nextElementSibling.innerText])"
    )
    return dict(page.evaluate(pairs))


def told_at(page: Any, title: str, across: float = 0.55, down: float = 0.5) -> dict[str, str]:
    """The hover text at a place of the drawing with this title."""
    card = page.locator("figure").filter(has=page.get_by_role("heading", name=title)).first
    return hover(page, card.locator(".plot"), across, down)


def test_hovering_names_the_row_the_group_and_the_model(opened: Open) -> None:
    page, _ = opened(samples.content())
    told = told_at(page, "Interval calibration")
    assert told["Series"] == "observed"
    level = float(told["Nominal level"].removesuffix("%")) / 100
    assert 0.4 < level < 0.7
    drawn = np.interp(level, samples.LEVELS, samples.calibration(bend=-0.2).y)
    assert float(told["Observed share"].removesuffix("%")) / 100 == pytest.approx(drawn, abs=1e-3)
    told = told_at(page, "Coverage by region")
    names = [str(name).removeprefix("region=") for name in samples.groups().columns["group"]]
    assert set(names) & set(told.values())
    assert "Empirical coverage" in told
    page.mouse.move(5, 5)
    page.locator("#tip").wait_for(state="hidden")
    several, _ = opened(samples.several_models())
    assert told_at(several, "Calibration curve")["Series"] in {"boosted trees", "linear", "deep"}


def a_map() -> Document:
    """The map alone."""
    return document_of(title="t", tables=samples.congruence()[:1])


def test_hovering_a_map_names_the_row_and_what_a_right_model_would_score(opened: Open) -> None:
    page, _ = opened(a_map())
    told = told_at(page, "Congruence error of each row")
    table = samples.congruence()[0]
    row = list(table.columns["row"]).index(told["Row"])
    assert float(told["CCE"]) == pytest.approx(table.columns["cce"][row], rel=1e-3)
    assert float(told["p-value"]) == pytest.approx(table.columns["p_value"][row], rel=1e-3)
    assert told["CCE of a perfect model"] == "0.007"


def test_hovering_a_characteristics_curve_tells_k(opened: Open) -> None:
    curve = samples.characteristic()[0]
    page, _ = opened(document_of(title="t", curves=(curve, *samples.deficit())))
    unfold(page)
    for question, width in (
        ("Uncertainty characteristics", "Bandwidth (MW)"),
        ("deficit", "Bandwidth"),
    ):
        told = told_at(page, question, across=0.4, down=0.6)
        place = next(float(text) for name, text in told.items() if name.startswith(width))
        assert float(told["k"]) == pytest.approx(place / curve.x[300], rel=2e-3)


def test_a_map_is_drawn_in_the_colours_of_its_legend_in_light_and_dark(opened: Open) -> None:
    shown = {}
    for scheme in ("light", "dark"):
        page, _ = opened(a_map(), color_scheme=scheme)
        card = page.locator("figure").filter(has_text="Congruence error of each row")
        legend = card.locator(".ramp-colours i").evaluate_all(
            "all => all.map((one) => getComputedStyle(one).backgroundColor)"
        )
        points = card.locator("[class*='mark-symbol'] path").evaluate_all(
            """all => all.filter((one) => one.getAttribute("opacity") !== "0")
                .map((one) => getComputedStyle(one).fill)"""
        )
        assert len(points) == 150
        assert set(points) <= set(legend)
        assert points[-1] == legend[-1]  # the strongest is drawn last, on top
        shown[scheme] = legend
    assert not set(shown["light"]) & set(shown["dark"])


def pairs() -> Document:
    """Groups with long names of two parts."""
    names = [f"region=north, season={season}" for season in ("spring", "summer", "autumn")]
    table = samples.groups(4, names=[*(name.removeprefix("region=") for name in names), "south"])
    return document_of(title="t", tables=[table])


def row_labels(page: Any) -> list[str]:
    """Names of the rows of a dot plot, the lines of each joined by a stroke."""
    card = page.locator("figure").filter(has_text="Empirical coverage")
    labels: list[str] = card.locator(".role-axis-label text").evaluate_all(
        """all => all.map((one) =>
            [...one.querySelectorAll("tspan")].map((line) => line.textContent).join(" / ")
              || one.textContent)"""
    )
    return labels


def test_long_names_of_groups_are_whole_on_a_desk_and_take_two_lines_on_a_phone(
    opened: Open,
) -> None:
    page, _ = opened(pairs())
    assert "north, season=spring" in row_labels(page)
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(600)
    labels = row_labels(page)
    assert "north / season=spring" in labels
    assert "south" in labels
    assert not any("…" in label for label in labels)
    assert overflow(page) == []
    page.set_viewport_size(DESK)
    page.wait_for_timeout(600)
    assert "north, season=spring" in row_labels(page)


def surface(page: Any) -> int:
    """How light the page is, 0 to 255."""
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return int(colour.split("(")[1].split(",")[0])


def drawn_colours(page: Any) -> tuple[str, ...]:
    """The colours of the first drawing's axis title and first line."""
    told: list[str] = page.evaluate(
        """() => [".role-axis-title text", "[class*='mark-line'] path"].map((one) => {
            const style = getComputedStyle(document.querySelector(one));
            return style.fill + style.stroke;
        })"""
    )
    return tuple(told)


def test_dark_follows_the_system_and_the_reader(opened: Open) -> None:
    light, _ = opened(samples.content())
    dark, _ = opened(samples.content(), color_scheme="dark")
    assert surface(light) > 230
    assert surface(dark) < 40
    assert drawn_colours(light) != drawn_colours(dark)
    toggle = light.get_by_role("button", name="Dark")
    assert toggle.get_attribute("aria-pressed") == "false"
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    assert surface(light) < 40
    assert drawn_colours(light) == drawn_colours(dark)
    dark.get_by_role("button", name="Dark").click()
    assert surface(dark) > 230


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(opened: Open, scheme: str) -> None:
    page, _ = opened(samples.content(), color_scheme=scheme)
    unfold(page)
    worst = page.evaluate(
        """() => {
          const part = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
          const parse = (text) => text.match(/[\\d.]+/g).map(Number);
          const light = ([r, g, b]) =>
            0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
          const behind = (one) => {
            for (let at = one; at; at = at.parentElement) {
              const colour = parse(getComputedStyle(at).backgroundColor);
              if (colour.length === 3 || colour[3] === 1) return colour;
            }
            return [255, 255, 255];
          };
          const kinds = "h1,h2,h3,p,dt,dd,li,th,td,small,summary,a,button";
          const said = [...document.querySelectorAll(kinds)].filter((one) =>
            one.checkVisibility() && one.innerText.trim() && !one.matches(".skip"));
          return said.map((one) => {
            const [a, b] = [light(parse(getComputedStyle(one).color)), light(behind(one))];
            return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.innerText.slice(0, 40)];
          }).sort((a, b) => a[0] - b[0])[0];
        }"""
    )
    assert worst[0] >= 4.5, worst


def overflow(page: Any) -> list[str]:
    """Elements that reach past the right edge, those inside scrolling regions left out."""
    wide: list[str] = page.evaluate(
        """() => {
          const edge = document.documentElement.clientWidth;
          const past = (one) => one.getBoundingClientRect().right > edge + 1;
          return [...document.querySelectorAll("main *, header *")]
            .filter((one) => !one.closest(".scroll, nav, .skip, .quiet, svg") && past(one))
            .map((one) => one.outerHTML.slice(0, 90));
        }"""
    )
    return wide


def test_a_phone_shows_everything_without_sideways_scrolling(opened: Open) -> None:
    for content in (samples.content(), samples.several_models(), hostile_content()):
        page, _ = opened(content, viewport=PHONE)
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert overflow(page) == []
        widths = page.eval_on_selector_all(
            ".plot svg",
            """all => all.filter((one) => one.checkVisibility())
                .map((one) => one.getBoundingClientRect().width)""",
        )
        assert len(widths) > 5
        assert all(200 < width < 340 for width in widths)


def hostile_content(text: str = HOSTILE) -> Document:
    """A report in which every text is hostile."""
    record = samples.record(text, 1.0, 0.1, units=text, model=text, source=text, reason=text)
    told, oracle = samples.risk_coverage(text)
    curve, constant, marks = samples.characteristic(text)
    points = np.array([text, f"{text}2", f"{text} 3"], dtype=object)
    made = document_of(
        title=text,
        lines=[VerdictLine(text, tone, text) for tone in ("bad", "good", "info")],
        findings=[
            replace(samples.finding(text, "bad", text), where=text, model=model)
            for model in (text, "b")
        ],
        records=(
            record,
            replace(record, model="b", options={text: text}),
            replace(record, group=text),
            Record(metric=text, value=float("nan"), reason=text, model=text),
        ),
        curves=tuple(
            replace(one, notes=text, band=text, x_label=text, y_label=text, hover={text: one.x})
            for one in (
                samples.calibration(text),
                samples.calibration("b"),
                replace(samples.error_by_width(), name=text),
                told,
                oracle,
                curve,
                constant,
                replace(samples.pit_histogram(), model=text, group=text),
            )
        ),
        tables=(
            ResultTable(name=text, columns={text: np.array([text] * 20, dtype=object)}, notes=text),
            samples.groups(3, model=text, names=[text, text, "c"]),
            samples.models(text, "b"),
            samples.worst_rows(column=text, value=text),
            replace(marks, columns={**marks.columns, "point": points}),
            *samples.hostile_congruence(text),
        ),
        command=text,
        facts={text: text, "short": "</dd><script>window.pwned=5</script>"},
    )
    entry = GlossaryEntry(name=text, title=text, meaning=text, formula=text, source=text)
    return replace(made, glossary=(entry,))


def test_hostile_text_never_runs_on_the_page_nor_in_hover_texts(opened: Open) -> None:
    page, _ = opened(hostile_content())
    unfold(page)
    named = 0
    drawings = page.locator(".plot").locator("visible=true").all()
    assert len(drawings) >= 7
    for plot in drawings:
        named += "window.pwned=1" in " ".join(hover(page, plot, 0.55, 0.5).values())
        kinds = page.evaluate("[...document.querySelectorAll('#tip *')].map((one) => one.tagName)")
        assert set(kinds) <= {"DL", "DT", "DD"}
    assert named >= 4
    page.get_by_role("button", name="Copy").click()
    for button in page.locator("thead button").locator("visible=true").all()[:6]:
        button.click()
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, iframe, object, embed, [onerror], [onload]").count() == 0
    assert page.locator("script:not([type])").count() == 2
    addresses = page.eval_on_selector_all("a", "all => all.map((one) => one.getAttribute('href'))")
    assert all(address.startswith("#") for address in addresses)
    assert "</script><script>window.pwned=1" in page.locator("h1").inner_text()


def test_a_script_that_slipped_in_would_not_run(opened: Open) -> None:
    page, watch = opened(document_of(title="t"))
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.pwned = 1";
          document.body.append(script);
          const image = document.createElement("img");
          image.setAttribute("onerror", "window.pwned = 2");
          image.src = "https://example.org/x.png";
          document.body.append(image);
        }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in said for said in watch.console)
    assert not [url for url in watch.requests if url.startswith("http") and "example" not in url]
    watch.console.clear()
    watch.requests[1:] = []


def test_the_command_is_copied_or_marked(opened: Open) -> None:
    page, _ = opened(samples.content(), permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == samples.content().command
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Selected: press").wait_for()
    assert page.evaluate("getSelection().toString()") == samples.content().command


def test_print_is_light_whole_and_fits_the_paper(opened: Open) -> None:
    page, _ = opened(samples.content(), color_scheme="dark")
    for _press in range(2):
        page.get_by_role("button", name="Dark").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert 3 <= paper.count(b"/Type /Page\n") <= 14
    page.set_viewport_size({"width": 720, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    assert surface(page) == 255
    light, _ = opened(samples.content())
    assert drawn_colours(page) == drawn_colours(light)
    assert not page.locator("header.bar").is_visible()
    assert overflow(page) == []
    wide = page.evaluate(
        """() => [...document.querySelectorAll("table")].filter((one) => one.checkVisibility()
            && one.getBoundingClientRect().right > innerWidth + 1).length"""
    )
    assert wide == 0
    inside = page.evaluate(
        """() => {
          const right = (one) => one.getBoundingClientRect().right;
          const drawings = [...document.querySelectorAll(".plot svg")]
            .filter((one) => one.checkVisibility());
          return drawings.length > 2
            && drawings.every((svg) => right(svg) <= right(svg.closest(".card")));
        }"""
    )
    assert inside


def test_figures_follow_the_width_of_the_window(opened: Open) -> None:
    page, _ = opened(samples.content())
    reached = "(f) => f(document.querySelector('.plot.drawn svg')?.getBoundingClientRect().width)"
    for size, test in ((PHONE, "width > 200 && width < 340"), (DESK, "width > 450")):
        page.set_viewport_size(size)
        page.wait_for_function(reached.replace("(f) => f", "() => ((width) => " + test + ")"))
        assert overflow(page) == []


def test_without_scripts_the_words_and_the_tables_are_there(opened: Open) -> None:
    page, _ = opened(samples.content(), java_script_enabled=False)
    assert page.locator(".headline").is_visible()
    words = page.locator(".plot noscript").all_inner_texts()  # no search by text looks into these
    assert len(words) == FIGURES
    assert any(text.startswith("This figure needs JavaScript") for text in words)
    assert not page.locator(".drawing").first.is_visible()
    assert page.locator(".states dl").is_visible()
    fold = page.locator("#section-numbers > details")
    fold.locator("summary").first.click()
    assert fold.locator("table").first.is_visible()


@pytest.mark.rate
def test_a_screenshot_is_not_blank(opened: Open) -> None:
    page, _ = opened(samples.content())
    picture = page.locator(".plot").first.screenshot()
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 500
    assert height > 250
    assert len(picture) > 5_000
