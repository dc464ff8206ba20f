# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run as files. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any, Dict, List

from ...module_utils._prove.statistics.forecast import activities, describe_levels
from ...module_utils._prove.statistics.history import history_of
from ...module_utils._prove.statistics.record import Record
from ...module_utils._prove.statistics.verdict import Verdict
from .._files import write as write_file
from .._files import writing
from . import activity, sentences

SCHEMA = "nearmetal.ec2/prove"
VERSION = 2
READABLE = (1, VERSION)  # 1 doesn't say on what it measured, and which values differed


def content(record: Record, result: Verdict, ending: sentences.Ending) -> Dict[str, Any]:
    """The report as plain JSON data."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "sha256": ending.sha256,
        **derive(record, result),
        "tested": list(ending.tested),
        "wanted": ending.wanted,
        "not_tested": list(ending.untested),
        "left_out": list(ending.left_out),
        "set_by_others": list(ending.set_by_others),
        "kept": ending.kept,
        "tuned_before": ending.tuned_before,
        "reboot_required": ending.reboot_required,
    }


def derive(record: Record, result: Verdict) -> Dict[str, Any]:
    """What of a report follows from the record alone."""
    start, history = record.start, history_of(record)
    return {
        "nearmetal": start.version,
        "host": start.host,
        "machine": dict(start.machine),
        "began": start.began,
        "ended": record.measurements[-1].ended if record.measurements else start.began,
        "load": {"command": start.load, "on": start.load_on, "versions": list(activity.versions(record))},
        "programs": list(start.programs),
        "tolerate": list(start.tolerate),
        "health": start.health,
        "restart": start.restart,
        "settings": start.settings._asdict(),
        "against": start.against,
        "places": [place._asdict() for place in start.places],
        "kept": record.end is not None and record.end.outcome == "kept",
        "verdict": result.as_dict(),
        "levels": describe_levels(history),
        "activity": {state: found._asdict() for state, found in activities(history).items()},
        "measurements": [
            {
                **{name: getattr(measurement, name) for name in ("phase", "concern", "pair", "attempt", "error")},
                "state": measurement.host_state,
                "metrics": [metric._asdict() for metric in measurement.metrics],
                "void": [firing._asdict() for firing in firings],
                "seconds": measurement.ended - measurement.began,
                "switch_seconds": measurement.switch_seconds,
            }
            for measurement, firings in history.judged
        ],
    }


def write(base: str, record: Record, result: Verdict, ending: sentences.Ending) -> List[str]:
    """Write `base`.json, .md and .html; the paths. Raises NearmetalError when one can't be written."""
    from . import page  # needs Jinja, and whoever only judges a record may have none

    forms = {
        f"{base}.json": json.dumps(content(record, result, ending), indent=1, allow_nan=False) + "\n",
        f"{base}.md": sentences.markdown(record, result, ending),
        f"{base}.html": page.render(record, result, ending),
    }
    for path, text in forms.items():
        with writing(f"the report {path}"):
            write_file(path, text)
    return list(forms)
