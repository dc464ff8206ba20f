# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text that the unit exports."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.metrics.export import render

FOUND = {
    "concerns": [
        {"name": "smt", "error": "no control", "knobs": [], "version": "0.3.0"},
        {"name": "clocksource", "error": "", "knobs": [{"status": "ok"}], "version": "0.3.0"},
    ],
    "drift": ["clocksource.source", "network_stack.rx", "network_stack.rx"],
    "needs_reboot": ["smt.threads"],
    "failed": [{"concern": "numa"}],
    "damaged": [],
}
ALLOWANCES = {'en"s5': {"pps_allowance_exceeded": 12, "conntrack_allowance_available": 900}}


def test_all_that_is_known_is_exported_in_the_text_format() -> None:
    assert render(FOUND, ALLOWANCES, exported=1000.0, planned=900.0) == (
        "# HELP nearmetal_unit_export_timestamp_seconds When this file was written.\n"
        "# TYPE nearmetal_unit_export_timestamp_seconds gauge\n"
        "nearmetal_unit_export_timestamp_seconds 1000\n"
        "# HELP nearmetal_unit_planned_timestamp_seconds When the unit last planned since the boot.\n"
        "# TYPE nearmetal_unit_planned_timestamp_seconds gauge\n"
        "nearmetal_unit_planned_timestamp_seconds 900\n"
        "# HELP nearmetal_unit_drifted_settings Settings that are no longer as wanted.\n"
        "# TYPE nearmetal_unit_drifted_settings gauge\n"
        "nearmetal_unit_drifted_settings 3\n"
        "# HELP nearmetal_unit_drift Places at which a setting is no longer as wanted.\n"
        "# TYPE nearmetal_unit_drift gauge\n"
        'nearmetal_unit_drift{concern="clocksource",knob="source"} 1\n'
        'nearmetal_unit_drift{concern="network_stack",knob="rx"} 2\n'
        "# HELP nearmetal_unit_waiting_for_reboot Settings that take effect at the next boot.\n"
        "# TYPE nearmetal_unit_waiting_for_reboot gauge\n"
        "nearmetal_unit_waiting_for_reboot 1\n"
        "# HELP nearmetal_unit_failed_concerns Concerns that failed in their last run, or can't be planned.\n"
        "# TYPE nearmetal_unit_failed_concerns gauge\n"
        "nearmetal_unit_failed_concerns 2\n"
        "# HELP nearmetal_unit_ena_allowance_exceeded_total Packets over an EC2 limit since the driver was loaded.\n"
        "# TYPE nearmetal_unit_ena_allowance_exceeded_total counter\n"
        'nearmetal_unit_ena_allowance_exceeded_total{interface="en\\"s5",allowance="pps_allowance_exceeded"} 12\n'
        "# HELP nearmetal_unit_ena_conntrack_available Connections that EC2 can still track.\n"
        "# TYPE nearmetal_unit_ena_conntrack_available gauge\n"
        'nearmetal_unit_ena_conntrack_available{interface="en\\"s5"} 900\n'
    )


def test_what_is_not_known_has_no_line() -> None:
    empty = {**FOUND, "concerns": [], "drift": [], "failed": []}
    text = render(empty, {}, exported=1000.0, planned=None)
    assert "planned_timestamp" not in text
    assert "_ena_" not in text
    assert "nearmetal_unit_drifted_settings 0\n" in text
    assert "nearmetal_unit_drift{" not in text
