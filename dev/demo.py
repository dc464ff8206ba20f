# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on an emulated EC2-like host: audit, tune, reboot, measure, restore. `python -m dev.demo [--keep]`."""

from __future__ import annotations

import argparse
import contextlib
import html
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from dev import ROOT
from lab import clock
from lab.clock import ClockCost
from lab.error import LabError
from lab.host import Host, instance, inventory, planned
from lab.progress import Progress

BIN = Path(sys.executable).parent
SHAPE = "demo"
STEPS = 9
REPORTS = ROOT / "build" / "demo-report"
PLANNED = ("-e", "tune_workload=in_memory_database")
CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
# The content of a host wherever nearmetal could leave something, read by the host's own tools.
CONTENT = (
    f"cat {CURRENT}; cat /proc/cmdline; cat /sys/kernel/mm/transparent_hugepage/enabled;"
    " sysctl vm.swappiness vm.overcommit_memory net.core.somaxconn net.ipv4.tcp_keepalive_time"
    " net.ipv4.tcp_slow_start_after_idle;"
    " find /etc /usr/local /boot/grub -xdev -type f -exec sha256sum {} + | sort -k2; find / -xdev -name '*nearmetal*'"
)


class DemoError(Exception):
    """An expectation of the demo that failed, as a sentence."""


@dataclass
class Step:
    """What the index of the pages says of a step."""

    title: str
    seconds: float = 0.0
    pages: "list[str]" = field(default_factory=list)  # relative to the index
    verdicts: "list[str]" = field(default_factory=list)  # the first sentence of each page
    lines: "list[str]" = field(default_factory=list)  # what was measured


class Demo:
    """The steps, numbered and timed, and the pages that they leave."""

    def __init__(self, folder: Path, color: bool) -> None:
        self._folder = folder
        self._color = color
        self._steps: "list[Step]" = []
        shutil.rmtree(REPORTS, ignore_errors=True)

    def bold(self, text: str) -> str:
        """The text, bold on a terminal."""
        return f"\033[1m{text}\033[0m" if self._color else text

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One step: its title before, its seconds after."""
        step = Step(title)
        self._steps.append(step)
        started = time.monotonic()
        print(self.bold(f"\n[{len(self._steps)}/{STEPS}] {title}"), flush=True)
        yield
        step.seconds = time.monotonic() - started
        print(f"      took {step.seconds:.0f} s", flush=True)

    def show(self, text: str) -> None:
        """Print what a step found, and keep it for the index."""
        self._steps[-1].lines.append(textwrap.dedent(text))
        print(text, flush=True)

    def index(self) -> Path:
        """Write the page that tells the story of all steps, with a link to the report of each."""
        text = (ROOT / "dev/generate/templates/demo.html.j2").read_text("utf-8")
        template = jinja2.Template(text, autoescape=True)
        style = (ROOT / "plugins/plugin_utils/_forms/report.css").read_text("utf-8")
        page = REPORTS / "index.html"
        page.write_text(template.render(steps=self._steps, style=style), encoding="utf-8")
        return page

    def play(self, name: str, host: Host, *options: str) -> None:
        """Run a playbook of the collection on the host, as a user would."""
        hosts = self._folder / "hosts.ini"
        hosts.write_text(inventory.ansible([host]), encoding="utf-8")
        place = REPORTS / f"{len(self._steps)}-{name.replace('_', '-')}"
        shown = " ".join(["ansible-playbook", f"nearmetal.ec2.{name}", "-i", "hosts.ini", *options])
        print(f"      $ {shown}", flush=True)
        done = subprocess.run(
            [str(BIN / "ansible-playbook"), f"nearmetal.ec2.{name}", "-i", str(hosts), *options],
            cwd=ROOT,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_FORCE_COLOR": "1" if self._color else "0",
                "NEARMETAL_REPORT_DIRECTORY": str(place),
            },
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise DemoError(f"{shown} ended with status {done.returncode}")
        lead = re.search(r'id="h-verdict">([^<]*)<', (place / "report.html").read_text("utf-8"))
        self._steps[-1].pages.append(f"{place.name}/report.html")
        self._steps[-1].verdicts.append(html.unescape(lead[1]) if lead else name)


def compare(before: ClockCost, after: ClockCost) -> str:
    """The two measurements side by side."""
    rows = [
        ("", "before", "after"),
        ("clock source", before.source, after.source),
        ("one clock read", f"{before.ns_per_read:,.0f} ns", f"{after.ns_per_read:,.0f} ns"),
        ("system calls of 1,000 reads", f"{before.system_calls:,}", f"{after.system_calls:,}"),
        ("of them to read the clock", f"{before.clock_calls:,}", f"{after.clock_calls:,}"),
    ]
    lines = [f"      {name:<28} {first:>12} {second:>12}" for name, first, second in rows]
    lines.append(f"      a clock read costs 1/{before.ns_per_read / after.ns_per_read:.0f} of what it did")
    return "\n".join(lines)


def run(keep: bool, demo: Demo, progress: Progress) -> None:
    """Run all steps on a fresh host, which ends after them unless `keep`."""
    with demo.step("Boot a stand-in for m5.xlarge: 2 cores with 2 threads each, a slow clock"):
        host = instance.up(SHAPE, "demo", outlive=keep, progress=progress)
    try:
        _steps(host, demo, progress)
    except BaseException:
        host.down()
        raise
    if keep:
        print(f"\nThe host stays up. Log in: python3 -m lab ssh {host.name}    End it: python3 -m lab down {host.name}")
        print(f"An inventory of it, to try the playbooks: python3 -m lab inventory {host.name} > demo.ini")
    else:
        host.down()


def _steps(host: Host, demo: Demo, progress: Progress) -> None:
    with demo.step("Measure what reading the clock costs (natively compiled program, strace)"):
        before = clock.measure(host, progress)
        content = host.run(CONTENT)
    with demo.step("Audit: what is left on the table, and why (changes nothing)"):
        demo.play("audit", host, *PLANNED)
        _expect(host.run(CONTENT) == content, "the audit changed the host")
    with demo.step("Tune for an in-memory database"):
        demo.play("in_memory_database", host)
    with demo.step("Measure again"):
        after = clock.measure(host, progress)
        _expect(after.source == "tsc" and after.clock_calls == 0, "the host doesn't run on tsc")
        demo.show(compare(before, after))
    with demo.step("Reboot through its own GRUB"):
        host.reboot()
    with demo.step("Audit again after the reboot: everything is still set"):
        planned.wait(host)
        _expect(host.run(f"cat {CURRENT}").strip() == "tsc", "the clock source did not survive the reboot")
        demo.play("audit", host, *PLANNED)
    with demo.step("Restore: take everything back"):
        demo.play("restore", host)
    with demo.step("Check with the host's own cat, find and sha256sum that nothing is left"):
        left = _difference(content, host.run(CONTENT))
        _expect(not left, f"the host differs from what it was:\n{left}")
        demo.show(f"      clock source {before.source}, huge pages and kernel parameters as before the tuning;")
        demo.show("      /etc, /usr/local and /boot/grub as they were")


def _difference(before: str, after: str) -> str:
    differing = set(before.splitlines()) ^ set(after.splitlines())
    return "\n".join(sorted(differing))


def _expect(condition: bool, failure: str) -> None:
    if not condition:
        raise DemoError(failure)


def main() -> int:
    """Run the demo; 1 when an expectation failed."""
    parser = argparse.ArgumentParser(prog="python -m dev.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the host up and say how to log in")
    keep = parser.parse_args().keep
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    with tempfile.TemporaryDirectory(prefix="nearmetal-demo-") as folder:
        demo = Demo(Path(folder), color)
        try:
            run(keep, demo, Progress(sys.stdout))
        except (DemoError, LabError) as error:
            print(f"\ndemo: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\ndemo: interrupted; the host was ended", file=sys.stderr)
            return 130
    page = demo.index().relative_to(ROOT)
    print(demo.bold(f"\nDone in {time.monotonic() - started:.0f} s. Each step with its page: {page}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
