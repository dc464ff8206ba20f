# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON report of a run is what its schema says: each key of either is in the other too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import jsonschema
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.rules import VERDICTS
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.single_concerns import Part
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import document, sentences

from tests.support.prove.proofs import noisy, run, shared, start
from tests.support.report.schema import strict

SCHEMA: Dict[str, Any] = json.loads(Path(document.__file__).with_name("proof.schema.json").read_text("utf-8"))
CONCERNS = ("clocksource.source", "hugepages.thp")


def content(record: Record) -> Dict[str, Any]:
    """The report as a program reads it."""
    ending = sentences.Ending(
        True, record.start.tested, ["a.b: needs a reboot"], wanted={"clocksource.source": ["tsc"]}
    )
    found: Dict[str, Any] = json.loads(json.dumps(document.content(record, verdict(record), ending), allow_nan=False))
    return found


def with_parts() -> Record:
    begun = start(each=True)
    return run(
        shared({"clocksource": 0.05, "hugepages": 0.0}),
        record=begun._replace(start=begun.start._replace(tested=CONCERNS)),
    )


@pytest.mark.parametrize(
    "record",
    [run(noisy(0.08, 0.02)), run(noisy(0.0, 0.02), most=5), start(), with_parts()],
    ids=["better", "interrupted", "before anything", "with the parts"],
)
def test_a_report_has_all_keys_of_its_schema_and_no_other(record: Record) -> None:
    found = content(record)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(found)


def test_the_schema_has_the_numbers_and_words_of_the_code() -> None:
    assert SCHEMA["properties"]["version"] == {"const": document.VERSION}
    assert SCHEMA["properties"]["schema"] == {"const": document.SCHEMA}
    assert SCHEMA["$defs"]["verdict"]["properties"]["verdict"]["enum"] == list(VERDICTS)
    assert list(SCHEMA["$defs"]["part"]["properties"]) == list(Part._fields)


@pytest.mark.parametrize("change", [{"version": 3}, {"kept": "yes"}, {"verdict": {}}, {"measurements": [{}]}])
def test_another_form_is_not_taken_for_a_report(change: Dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate({**content(start()), **change})
