# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record as lines: a written record is read back, and anything else is refused."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics import evidence
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.order import order
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import (
    End,
    Measurement,
    Record,
    with_entry,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record_lines import line_of, read
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step, next_step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from hypothesis import given
from hypothesis import strategies as st

from tests.support.prove.proofs import noisy, refusal, run, start, written


def changed(line: bytes, **fields: Any) -> bytes:
    """A line with some of its fields replaced."""
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


def strange(value: float) -> Dict[str, Any]:
    """A metric of a line, with this value."""
    return {"name": "requests", "value": value, "unit": "requests/s", "better": "larger"}


def older(lines: List[bytes]) -> List[bytes]:
    """The record as an older version wrote it, which knew fewer fields."""
    content = {name: value for name, value in json.loads(lines[0]).items() if name != "against"}
    return [json.dumps({**content, "format": 1}).encode() + b"\n", *lines[1:]]


SINCE_FORMAT_4 = ("jobs", "cpu_softirq", "context_switches", "interrupts")


def with_jobs(line: bytes, jobs: object) -> bytes:
    """A line whose counters after the load have these jobs; None: as format 3 had them."""
    content = json.loads(line)
    for name in ("before", "after"):
        sample = {**content[name], "jobs": jobs}
        content[name] = (
            sample if jobs is not None else {key: sample[key] for key in sample if key not in SINCE_FORMAT_4}
        )
    if jobs is None:
        del content["load_version"]
    return json.dumps(content).encode() + b"\n"


RECORD = run(noisy(0.05, 0.02), seed=5)
LINES = written(RECORD).splitlines(keepends=True)


def before_stays() -> Record:
    """A run that 0.2.0 began."""
    began = start(seed=5, soak=0)
    return began._replace(start=began.start._replace(format=3))


def test_the_coins_of_a_record_are_the_same_for_ever() -> None:
    # What they showed is written down: a record of today is read in years, by another Python.
    shown = "".join(order(4711, host, "pair", pair, 1)[0][0] for host in ("db-1", "é") for pair in range(1, 21))
    assert shown == "utuutuuttutututuututtuttuttttutuuuuuttut"


def test_a_record_is_read_back_as_it_was_written() -> None:
    failed = RECORD.measurements[-1]._replace(metrics=(), error="exit status 1", before=None, after=None)
    for record in (
        RECORD,
        RECORD._replace(measurements=(*RECORD.measurements[:-1], failed)),
        with_entry(RECORD, End("restored", "unsafe", 6.0)),
        start(),
    ):
        assert read(written(record)) == record


def test_a_record_from_before_jobs_were_watched_is_read_and_goes_on() -> None:
    whole = run(noisy(0.05, 0.02), record=before_stays())
    written_lines = written(whole).splitlines(keepends=True)
    lines = [written_lines[0], *(with_jobs(line, None) for line in written_lines[1:9])]
    record = read(b"".join(lines))
    assert (verdict(record).unwatched, record.start) == (("timers",), whole.start)
    assert next_step(record) == next_step(whole._replace(measurements=whole.measurements[:8]))
    mixed = read(b"".join([*lines, *written_lines[9:]]))
    assert [measurement.metrics for measurement in mixed.measurements] == [
        measurement.metrics for measurement in whole.measurements
    ]


def test_a_record_from_before_several_clients_is_judged_as_it_was() -> None:
    def on_a_client(step: Step, measurement: Measurement) -> Measurement:
        around = {"client_before": (measurement.before,), "client_after": (measurement.after,)}
        return measurement._replace(generator_busy=(0.6,), **around)

    def as_format_3(line: bytes) -> bytes:
        content = json.loads(line)
        if "generator_busy" in content:
            content.update({name: content[name][0] for name in ("client_before", "client_after", "generator_busy")})
        return json.dumps(content).encode() + b"\n"

    old = before_stays()
    record = run(noisy(0.05, 0.02), on_a_client, record=old)
    assert verdict(record).verdict == "not_quiet", "half of a CPU was the limit"
    lines = written(record).splitlines(keepends=True)
    assert read(b"".join(map(as_format_3, lines))) == record
    assert verdict(run(noisy(0.05, 0.02), on_a_client, seed=5, soak=0)).verdict == "better"


def test_a_record_from_before_small_wagers_and_stays_is_judged_as_it_was() -> None:
    record = run(noisy(0.05, 0.02), record=before_stays())
    lines = written(record).splitlines(keepends=True)
    content = json.loads(lines[0])
    del content["settings"]["soak"], content["settings"]["burn_in"]
    record = read(b"".join([json.dumps(content).encode() + b"\n", *lines[1:]]))
    found = verdict(record)
    assert (found.verdict, found.over, found.keep, found.soaked) == ("better", True, True, 0)
    assert found.metrics[0].evidence == max(evidence.peak(found.differences, 0.0, evidence.COARSE))
    assert found.metrics[0].evidence > 1.2 * max(evidence.peak(found.differences))


def test_a_run_that_is_killed_at_any_byte_goes_on_as_if_nothing_had_happened() -> None:
    for index in range(1, len(LINES) + 1):
        whole = read(b"".join(LINES[:index]))
        assert whole == RECORD._replace(measurements=RECORD.measurements[: index - 1])
        if index < len(LINES):
            cut = (1, len(LINES[index]) // 2, len(LINES[index]) - 1)[index % 3]
            assert read(b"".join(LINES[:index]) + LINES[index][:cut]) == whole
    half = read(b"".join(LINES[: len(LINES) // 2]))
    assert run(noisy(0.05, 0.02), record=half) == RECORD


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda lines: [], "no complete line"),
        (lambda lines: [lines[0].rstrip()], "no complete line"),
        (lambda lines: lines[1:], "line 1 .* begins with its start"),
        (lambda lines: [lines[0], *lines], "line 2 .* a second start"),
        (lambda lines: [*lines[:3], b"\n", *lines[3:]], "line 4 "),
        (lambda lines: [*lines[:3], lines[3][:40] + b"\n", *lines[4:]], "line 4 "),
        (lambda lines: [lines[0], b"[1]\n"], "line 2 .* it isn.t a JSON object"),
        (lambda lines: [lines[0], b'{"kind":"pair"}\n'], "line 2 .* its kind is 'pair'"),
        (lambda lines: [lines[0], b"{}\n"], "line 2 .* 'kind' is absent"),
        (lambda lines: [lines[0], b"[" * 100000 + b"\n"], "line 2 .* nested deeper"),
        (older, "line 1 .* format 1 is of another version; this nearmetal reads 3 and 7"),
        (lambda lines: [changed(lines[0], settings={"seed": 5, "pairs": 3})], "line 1 .* pairs must be .*, not 3"),
        (lambda lines: [changed(lines[0], settings=[])], "line 1 "),
        (lambda lines: [changed(lines[0], host=7)], "line 1 .* it has 7 in place of a text"),
        (lambda lines: [changed(lines[0], host="\x1b[31m")], "line 1 .* a line without control characters"),
        (lambda lines: [lines[0], changed(lines[1], metrics=[], error="a\nb")], "line 2 .* a line without control"),
        (lambda lines: [changed(lines[0], tested=["a"] * 2000)], "line 1 .* a list of texts"),
        (lambda lines: [lines[0], changed(lines[1], peek=1)], "line 2 .* unknown field 'peek'"),
        (
            lambda lines: [lines[0], changed(lines[1], state="faster")],
            "line 2 .* 'faster' in place of untuned or tuned",
        ),
        (lambda lines: [lines[0], changed(lines[1], metrics=[])], "line 2 .* either metrics or an error"),
        (lambda lines: [lines[0], lines[1].replace(b'"pair":1', b'"pair":NaN')], "line 2 .* NaN is no JSON"),
        (lambda lines: [lines[0], changed(lines[1], metrics=[strange(1e101)])], "line 2 .* from 1e-100 to 1e\\+100"),
        (lambda lines: [lines[0], changed(lines[1], metrics=[strange(1e-101)])], "line 2 .* from 1e-100 to 1e\\+100"),
        (lambda lines: [lines[0], changed(lines[1], pair=True)], "line 2 .* true in place of a whole number"),
        (
            lambda lines: [lines[0], changed(lines[1], generator_busy=1.5)],
            "line 2 .* 1.5 in place of a number from 0 to 1",
        ),
        (lambda lines: [lines[0], changed(lines[1], after={"boot_id": "x"})], "line 2 "),
        (lambda lines: [lines[0], with_jobs(lines[1], ["cron"])], "line 2 .* in place of jobs"),
        (lambda lines: [lines[0], with_jobs(lines[1], {"cron": 7})], "line 2 .* 7 in place of a text"),
        (lambda lines: [lines[0], with_jobs(lines[1], {"cron\n": "7"})], "line 2 .* a line without control characters"),
        (lambda lines: [lines[0], changed(lines[1], load_version="a\nb")], "line 2 .* a line without control"),
        (lambda lines: [lines[0], changed(lines[1], pair=2)], "line 2 .* doesn't follow from the seed"),
        (lambda lines: [*lines[:5], lines[6]], "line 6 .* doesn't follow from the seed"),
        (lambda lines: [*lines, lines[-1]], "doesn't follow from the seed"),
        (lambda lines: [changed(lines[0], settings={"seed": 6}), *lines[1:]], "doesn't follow from the seed"),
        (lambda lines: [changed(lines[0], host="db-2"), *lines[1:]], "doesn't follow from the seed"),
        (
            lambda lines: [lines[0], line_of(End("kept", "better", 1.0)).encode(), lines[1]],
            "it follows the end of the run",
        ),
        (lambda lines: [b"\xff" + lines[0]], "line 1 "),
        (lambda lines: [b" " * 9_000_000], "9000000 bytes"),
        (lambda lines: [lines[0], *[b"{}\n"] * 6000], "6001 lines"),
    ],
)
def test_a_record_of_another_form_is_refused_in_one_sentence(
    spoil: "Callable[[List[bytes]], List[bytes]]", words: str
) -> None:
    with pytest.raises(NearmetalError, match=words) as refused:
        read(b"".join(spoil(list(LINES))))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 700


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(range(8)), st.data(), JSON)
def test_any_value_in_any_field_is_refused_in_one_sentence_or_read(index: int, data: Any, value: Any) -> None:
    content: Dict[str, Any] = json.loads(LINES[index])
    place = content
    while True:
        name = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[name], dict) or not place[name] or data.draw(st.booleans()):
            break
        place = place[name]
    place[name] = value
    lines = [*LINES[:index], json.dumps(content).encode() + b"\n", *LINES[index + 1 :]]
    assert refusal(read, b"".join(lines)).isprintable()


def test_a_record_from_before_restarts_is_read() -> None:
    plain = json.loads(line_of(start().start))
    assert plain.pop("restart") == ""
    assert read(f"{json.dumps(plain)}\n".encode()).start == start().start
