"""A topic can be taken away: what is left assesses without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "howsure"
WITHOUT = """
import sys
import numpy as np
import howsure
from howsure.predictions import LabelSets

assert howsure.__file__.startswith(sys.argv[1]), howsure.__file__
rng = np.random.default_rng(0)
x, time = rng.normal(size=(60, 2)), np.arange(60)
lead = time % 2 + 1
law = howsure.Distribution.normal(x[:, 0], np.exp(0.3 * x[:, 1]))
y = x[:, 0] + np.exp(0.3 * x[:, 1]) * rng.normal(size=60)
inputs = {"a": x[:, 0], "b": x[:, 1], "ease": -x[:, 1]}
quick = howsure.Options(trials=False)
roles = {"time": time, "horizon": lead, "groups": {"g": lead}, "ease": "ease"}
found = howsure.assess(howsure.Table(y, law, features=inputs, **roles), options=quick)
found.save("page.html")
found.save("report.json")
assert "fault" not in found.facts.get("Notes", ""), found.facts["Notes"]
from howsure.testing import assert_holds

assert_holds(y, law, limits=[{"measure": "crps", "max": 9.0}], fail_on="bad")
sets = LabelSets(x[:, :1] > np.array([-1.0, 0.5, 1.0]), coverage=0.9)
of_sets = howsure.assess((x[:, 1] > 0) + 0, sets, options=quick)
of_sets.save("sets.html")
print(*(finding.id for each in (found, of_sets) for finding in each.findings))
"""


TOPICS = {
    "drift": (("drift.py",), {"drift"}),
    "lead_time": (("lead_time.py",), {"lead_time"}),
    "characteristic": (("characteristic", "../cli/characteristic.py"), {"trade"}),
    "adaptivity": (("adaptivity",), {"ease", "sets"}),
    # its monitor goes with it
    "congruence": (
        ("congruence", "../report/congruence.py", "../report/monitor.py"),
        {"congruence"},
    ),
}
"""What is taken away of each, from the folder of topics on, and the findings that go."""
EVERY = {"coverage", *(name for _, findings in TOPICS.values() for name in findings)}


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.slow
def test_a_topic_can_be_deleted(topic: str, tmp_path: Path) -> None:
    copy = tmp_path / "howsure"
    shutil.copytree(SOURCE, copy)  # compiled files are as old as theirs
    files, findings = TOPICS[topic]
    for name in files:
        path = copy / "topics" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    table = copy / "engine" / "catalogue.py"
    text, lines = re.subn(rf'^ +"{topic}(\.view)?",\n', "", table.read_text(), flags=re.MULTILINE)
    assert lines == 1
    table.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answered = set(done.stdout.split())
    assert answered & EVERY == EVERY - findings
