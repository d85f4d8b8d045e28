"""`howsure schema`: what the JSON that howsure writes holds, for programs that read it."""

from __future__ import annotations

import json
from pathlib import Path

from howsure.cli.terminal import say
from howsure.core.files import atomic_write, check_outputs
from howsure.core.schemas import SchemaName, schema


def run(name: SchemaName, output: Path | None) -> None:
    """Print the schema of a form, or write it."""
    text = json.dumps(schema(name), ensure_ascii=False, indent=2)
    if output is None:
        for line in text.split("\n"):
            say(line)
        return
    check_outputs([output])
    atomic_write(output, f"{text}\n")
    say(f"written: {output}")
