"""Model cards: metadata that YAML and Hugging Face read, and Markdown around it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.report.assessment import Assessment
from howsure.report.document import Document, Section, VerdictLine, form_of

N = 200
HOSTILE = "---\nx: [1] # \"'\\\t\ufeff\uffff\x85\u2028<b>`|{{ {% **z** [a](http://b)"


@cache
def assessed(scale: float = 1.0, name: str = "model") -> Assessment:
    z = child(0, "card").normal(size=N)
    given = howsure.Distribution.normal(np.zeros(N), np.full(N, scale))
    return howsure.assess(scale * z, {name: given}, options=howsure.Options(trials=False))


def metadata(card: str) -> Any:
    """The front matter, read by YAML alone."""
    before, held, _ = card.split("---\n", 2)
    assert before == ""
    return needs("yaml").safe_load(held)


def metrics(card: str, place: int = 0) -> dict[tuple[str, float | None], Any]:
    """The numbers of a model by measure and coverage."""
    (result,) = metadata(card)["model-index"][place]["results"]
    return {(m["type"], m.get("args", {}).get("coverage")): m for m in result["metrics"]}


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e22])
def test_every_number_is_the_records_own(scale: float) -> None:
    """To the last digit, whatever its exponent; with its error, where that is known."""
    result = assessed(scale)
    told = metrics(result.to_card())
    assert {"empirical_coverage", "crps", "mae", "rmse"} <= {name for name, _ in told}
    for (name, coverage), each in told.items():
        record = result.record(name, coverage=coverage)
        assert type(each["value"]) is float
        assert each["value"] == record.value
        for part in ("standard_error", "lower", "upper", "confidence", "n"):
            known = np.isfinite(getattr(record, part))
            assert (part in each["args"]) == known
            assert not known or each["args"][part] == getattr(record, part)


def test_hugging_face_reads_it() -> None:
    """Its own reader gives the numbers, and writes what it reads again."""
    hub = needs("huggingface_hub")
    result = assessed()
    card = hub.ModelCard(result.to_card(), ignore_metadata_errors=False)
    assert card.data.model_name == "model"
    read = {each.metric_type: each for each in card.data.eval_results}
    assert len(read) >= 8
    for name, each in read.items():
        assert each.task_type == "tabular-regression"
        assert (each.dataset_type, each.dataset_name) == ("table", "unnamed table")
        assert each.metric_value == result.value(name)
    again = hub.ModelCard(str(card), ignore_metadata_errors=False)
    assert again.data.eval_results == card.data.eval_results


def test_sections_say_what_was_asked_and_what_was_not() -> None:
    result = assessed()
    tokens = MarkdownIt("commonmark").enable("table").parse(result.to_card().split("---\n", 2)[2])
    titles = [tokens[k + 1].content for k, t in enumerate(tokens) if t.type == "heading_open"]
    asked = ["Verdict", "Data", "Numbers", "Questions not judged"]
    assert titles == [result.title, *asked, "Reproduce"][: len(titles)]
    assert len(titles) >= 5
    (silent,) = [table for table in result.tables if table.name == "not_judged"]
    text = "".join(token.content + "\n" for token in tokens if token.type == "inline")
    assert all(question in text for question in silent.columns["question"])
    assert all(line.text.split(" (")[0] in text for line in result.lines)


def test_hostile_names_are_text() -> None:
    result = assessed(1.0, HOSTILE)
    card = result.to_card()
    (model,) = metadata(card)["model-index"]
    kept = HOSTILE
    for sign in "\n\t\ufeff\uffff\x85\u2028":
        kept = kept.replace(sign, "\ufffd")
    assert model["name"] == kept
    body = card.split("\n---\n", 1)[1]
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(body)
    inner = {part.type for token in tokens for part in token.children or []}
    assert not inner & {"html_inline", "link_open", "strong_open", "image"}
    assert not {token.type for token in tokens} & {"html_block", "hr"}


def test_several_models_have_an_entry_each() -> None:
    z = child(1, "card").normal(size=N)
    wide = howsure.Distribution.normal(np.zeros(N), np.full(N, 2.0))
    points = {"right": howsure.Distribution.normal(np.zeros(N), np.ones(N)), "wide": wide}
    result = howsure.assess(z, points, options=howsure.Options(trials=False))
    card = result.to_card()
    names = [each["name"] for each in metadata(card)["model-index"]]
    assert names == ["right", "wide"]
    for place, name in enumerate(names):
        told = metrics(card, place)["mean_width", 0.9]
        assert told["value"] == result.record("mean_width", model=name).value


def test_label_sets_are_of_classification() -> None:
    y = np.array(["a", "b"] * 30)
    sets = howsure.LabelSets([[True, k % 5 > 0] for k in range(60)], 0.9, labels=["a", "b"])
    card = howsure.assess(y, sets, options=howsure.Options(trials=False)).to_card()
    (model,) = metadata(card)["model-index"]
    assert model["results"][0]["task"] == {"type": "tabular-classification"}


def test_without_numbers_no_metadata_of_them() -> None:
    opening = Section(title="", lines=(VerdictLine("Nothing can be judged.", "undecided"),))
    card = Document(title="t", opening=opening).to_card()
    assert metadata(card) == {"tags": ["uncertainty"]}
    assert card.endswith("# t\n\n## Verdict\n\n- ? Nothing can be judged.\n")


@pytest.mark.parametrize("name", ["card.md", "model.card.md", "A.CARD.MD"])
def test_a_card_goes_by_its_name(tmp_path: Path, name: str) -> None:
    assessed().save(tmp_path / name)
    assert (tmp_path / name).read_text("utf-8") == assessed().to_card()


def test_other_names_are_what_they_were(tmp_path: Path) -> None:
    for name in ("scorecard.md", "card.json", "a.card.html"):
        assert form_of(name) == Path(name).suffix
    with pytest.raises(InputError, match=r"\.csv, \.card\.md, got 'card'"):
        form_of("card")
