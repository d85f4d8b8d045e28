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

assert howsure.__file__.startswith(sys.argv[1]), howsure.__file__
rng = np.random.default_rng(0)
x, time = rng.normal(size=(400, 2)), np.arange(400)
law = howsure.Distribution.normal(x[:, 0], np.exp(0.3 * x[:, 1]))
y = x[:, 0] + np.exp(0.3 * x[:, 1]) * rng.normal(size=400)
found = howsure.assess(y, law, x=x, groups={"g": time % 2}, time=time)
found.save("page.html")
found.save("report.json")
assert "fault" not in found.facts.get("Notes", ""), found.facts["Notes"]
from howsure.testing import assert_holds

assert_holds(y, law, limits=[{"measure": "crps", "max": 9.0}], fail_on="bad")
print(*(finding.id for finding in found.findings))
"""


TOPICS = {
    "drift": (("drift.py",), "drift"),
    "characteristic": (("characteristic", "../cli/characteristic.py"), "trade"),
    # its monitor goes with it
    "congruence": (
        ("congruence", "../report/congruence.py", "../report/monitor.py", "../report/monitored.py"),
        "congruence",
    ),
}
"""What is taken away of each, from the folder of measures on, and the finding that goes."""


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.slow
def test_a_topic_can_be_deleted(topic: str, tmp_path: Path) -> None:
    copy = tmp_path / "howsure"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    files, finding = TOPICS[topic]
    for name in files:
        path = copy / "metrics" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    of = rf"^(from howsure\.metrics\.{topic} import .*|    {topic}(\.TOPIC)?,)\n"
    table, beside = copy / "metrics" / "catalogue.py", copy / "report" / "assess.py"
    text, lines = re.subn(of, "", table.read_text(), flags=re.MULTILINE)
    assert lines == 2
    table.write_text(text)
    beside.write_text(beside.read_text().replace(f'("{topic}",)', "()"))
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
    told = done.stdout.split()
    assert "coverage" in told
    assert finding not in told
