"""What howsure writes as JSON, described by JSON Schema: a file for each form, in this folder."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any, Literal, get_args

from howsure.core.registry import check_known

SchemaName = Literal["report", "findings", "check", "state", "recalibration", "improvement"]
"""The forms that have a schema."""
_OTHER = re.compile(r'"urn:howsure:schema:(\w+):\d+#?[^"]*"')


def schema(name: SchemaName) -> dict[str, Any]:
    """The JSON Schema of a form that howsure writes.

    Each schema is of the draft 2020-12 and whole in itself: what it refers to is under ``$defs``.
    Its ``$id`` ends with its version, which rises with every change of the form.

    Parameters
    ----------
    name : {"report", "findings", "check", "state", "recalibration", "improvement"}
        A report (``assess --json``), its findings alone, ``check --json``, the metadata of a state
        (``assess --state``), a kept recalibration (``recalibrate --keep``), or the proof that
        ``improve`` writes.

    Returns
    -------
    dict
        The schema, as JSON reads it.

    Raises
    ------
    InputError
        If there is no such schema.

    Examples
    --------
    >>> schema("check")["$id"]
    'urn:howsure:schema:check:1'
    """
    check_known(name, get_args(SchemaName), "name")
    text = files(__name__).joinpath(f"{name}.json").read_text("utf-8")
    parsed: dict[str, Any] = json.loads(text)
    referred = set(_OTHER.findall(text)) & set(get_args(SchemaName)) - {name}
    for other in sorted(referred):
        parsed["$defs"][other] = schema(other)
    return parsed
