# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A perf that answers what a real one did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import processes, refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile import recording

RECORDED = Path(__file__).parents[2] / "unit/profile/recorded/redis_dd_python-cpu-clock-perf-6.1-linux-6.18.txt"
_PROGRAM = """#!/bin/sh
echo "$*" >>{log}
case $1 in
--version) echo perf version 6.1.187 ;;
stat) echo "<not supported>,,cycles,0,100.00,," ;;
record) echo data >perf.data; echo "[ perf record: Captured and wrote 0.1 MB perf.data ]" >&2; {record} ;;
script) {script} ;;
sched) if [ $2 = record ]; then {sched}; else cat {recorded}/timehist-*.out; fi ;;
trace) cat {recorded}/trace-*.out ;;
esac
"""


class Perf:
    """A perf on this machine, found before another one."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        for name in ("bin", "runs"):
            (folder / name).mkdir(parents=True)
        self.runs, self.log, self._program = folder / "runs", folder / "log", folder / "bin/perf"
        self._patch = patch
        self.answers()
        patch.setattr(recording, "FOLDER", str(self.runs))
        patch.setattr(processes, "PATH", f"{folder}/bin:{os.defpath}")

    def answers(self, record: str = "exit 0", script: str = f"cat {RECORDED}", sched: str = "exit 0") -> None:
        """What it does for `perf record`, `perf script` and `perf sched record`, as text for a shell."""
        answers = {"record": record, "script": script, "sched": sched, "recorded": RECORDED.parent}
        self._program.write_text(_PROGRAM.format(log=self.log, **answers))
        self._program.chmod(0o755)

    def remove(self) -> None:
        """From now on it isn't there, nor is another."""
        self._patch.setattr(recording, "program_path", lambda _name: None)
        self._patch.setattr(refusals, "program_of", lambda _tool: None)
