# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a fleet's reports take to write, and the page to open: python -m tests.bench.report [HOSTS]

Printed, never a timed test. The project allows itself 5 s to write 1,000 hosts and 2 s to open them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import terminal
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.write import FORMS, write_all

from tests.support.report import browser, reports

RUNS = 5


def main(hosts: int) -> None:
    """Print the median of a few runs for each form, for all together, and for Chromium."""
    report = reports.fleet(hosts)
    findings = sum(len(host.findings) for host in report.hosts)
    print(f"{hosts} hosts, {findings} findings, median of {RUNS} runs")
    for name, form in (*FORMS, ("terminal", lambda whole: "\n".join(terminal.render(whole)))):
        times, text = [], ""
        for _run in range(RUNS):
            started = time.perf_counter()
            text = form(report)
            times.append(time.perf_counter() - started)
        print(f"  {name:<12} {statistics.median(times):6.2f} s  {len(text.encode()) / 1e6:6.2f} MB")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        write_all(report, folder)
        print(f"  {'all files':<12} {time.perf_counter() - started:6.2f} s")
        if browser.PROGRAM:
            _opening(Path(folder) / "report.html")


def _opening(page: Path) -> None:
    loaded, drawn = [], []
    with browser.Browser() as chromium:
        chromium.view(1280, 900)
        for _run in range(RUNS):
            chromium.open(page)
            loaded.append(chromium.run("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            drawn.append(chromium.run(DRAWN))
    print(f"  {'Chromium':<12} {statistics.median(loaded) / 1000:6.2f} s to the first hosts")
    print(f"  {'':<12} {statistics.median(drawn) / 1000:6.2f} s to the last one")


DRAWN = """new Promise((done) => {
  const look = () => document.documentElement.dataset.drawn ? done(performance.now()) : requestAnimationFrame(look);
  look();
})"""

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
