# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of the unit's run on a lab host: python -m tests.bench.unit [--pairs 10] [--than CHECKOUT]

The host is tuned for in_memory_database. Measured are the CPU seconds of a plan, as at each boot, and of a look that
finds nothing changed, as every two minutes; with --than also those of another checkout's agent, in pairs. The guest's
clock goes on while other processes have this machine, so only an idle machine gives seconds that mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from dev import bench
from lab.host import Host

AGENT = "/usr/local/lib/nearmetal/nearmetal.pyz"
OTHER = "/root/other/nearmetal.pyz"
RUNS = {"plan": ["reapply"], "look": ["reapply", "--if-changed"]}
ALLOWED = {"plan": 4.0, "look": 1.0}  # seconds of CPU

# Runs on the host: alternates between the agents and prints the CPU seconds of each run.
MEASURE = """
import json, resource, subprocess, sys
agents, runs, count = json.loads(sys.argv[1])
def cost(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
spent = {name: {agent: [] for agent in agents} for name in runs}
for number in range(count + 1):
    for name, words in runs.items():
        for agent in agents if number % 2 else agents[::-1]:
            if name == "look":  # another agent has stored its fingerprint, by which this one would plan
                cost(["/usr/bin/python3", "-I", agent, *words])
            seconds = cost(["/usr/bin/python3", "-I", agent, *words])
            if number:
                spent[name][agent].append(seconds)
print(json.dumps(spent))
"""
BUILD = """
import sys
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
folder = sys.argv[1]
open(folder + "/nearmetal.pyz", "wb").write(bundle.build(VERSION))
open(folder + f"/nearmetal.{sys.implementation.cache_tag}.zip", "wb").write(bundle.compiled(VERSION))
"""


def _put_other(host: Host, checkout: Path) -> None:
    """The other checkout's agent, beside ours on the host; both have Python 3.11, so its compiled modules fit."""
    variables = {**os.environ, "PYTHONPATH": str(checkout / ".ansible/collections")}
    with tempfile.TemporaryDirectory(prefix="nm-other-") as folder:
        subprocess.run([sys.executable, "-c", BUILD, folder], cwd=checkout, env=variables, check=True)
        host.run(f"mkdir -p {Path(OTHER).parent}")
        for path in Path(folder).iterdir():
            host.put(path.read_bytes(), f"{Path(OTHER).parent}/{path.name}")


def measure(host: Host, hosts: Path, count: int, than: "Path | None") -> "list[str]":
    """A line per kind of run: medians of the CPU seconds, and of the ratios within the pairs."""
    bench.run(["ansible-playbook", "-i", str(hosts), str(bench.PLAYBOOKS / "tune.yml")], bench.environment())
    agents = [AGENT]
    if than is not None:
        _put_other(host, than)
        agents.append(OTHER)
    arguments = json.dumps([agents, RUNS, count])
    answer = host.run(f"python3 - '{arguments}'", stdin=MEASURE.encode(), seconds=3600.0)
    lines = []
    for name, spent in json.loads(answer).items():
        line = f"the unit's {name}: {count} runs, median CPU seconds (lowest to highest): {bench.spread(spent[AGENT])}"
        line += f", allowed {ALLOWED[name]:.1f}"
        if than is not None:
            ratios = [first / other for first, other in zip(spent[AGENT], spent[OTHER])]
            line += f" · the other's {bench.spread(spent[OTHER])} · ratio {statistics.median(ratios):.2f}"
            line += f" ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(line)
    return lines


def main(arguments: "list[str]") -> int:
    """Measure on a lab host of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.unit", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--than", type=Path, metavar="CHECKOUT", help="another checkout whose agent is compared")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="nm-bench-") as folder, bench.lab_host(Path(folder)) as (host, hosts):
        print("\n".join(measure(host, hosts, options.pairs, options.than)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
