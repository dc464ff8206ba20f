# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `nearmetal` and their options. PRIVATE to the collection."""

from __future__ import annotations

import argparse

from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="nearmetal", description="What nearmetal.ec2 keeps tuned on this host.")
    top.add_argument("--version", action="version", version=f"nearmetal.ec2 {VERSION}")
    names = "status|plan|topology|reapply|confirm|restore|capture"
    commands = top.add_subparsers(dest="command", required=True, metavar=names)
    status = commands.add_parser("status", help="what is tuned, by which run, what drifted, how to take it back")
    status.add_argument("--json", action="store_true", help="the same as JSON")
    plan = commands.add_parser("plan", help="what reapply would change; changes nothing")
    plan.add_argument("--from", dest="file", metavar="FILE", help="what tune would change on a captured host")
    plan.add_argument("--workload", help="with --from: these (web,cache), or auto, instead of what that host wanted")
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the same as JSON")
    form.add_argument("--commands", action="store_true", help="as shell commands that would do the same")
    topology = commands.add_parser("topology", help="print a picture (SVG): CPUs, caches, nodes, NICs, disks, queues")
    topology.add_argument("--from", dest="file", metavar="FILE", help="of a captured host")
    topology.add_argument("--workload", help="with --from: also as it would be after these (web,cache), or auto")
    reapply = commands.add_parser("reapply", help="set again what was wanted, planned for the present size of the host")
    reapply.add_argument("--if-changed", action="store_true", help="only if queues, interrupts, CPUs or disks changed")
    commands.add_parser("confirm", help="keep the network change that waits to be confirmed")
    commands.add_parser("dead-man", help="what the timer runs: put back a network change that nobody confirmed")
    commands.add_parser("abandoned", help="what the timer of prove runs: bring back what was before the experiment")
    commands.add_parser("capture", help="print what a plan asks of this host as one JSON file, for a bug report")
    restore = commands.add_parser("restore", help="take back one concern, or everything")
    restore.add_argument("concern", nargs="*", help="its name; everything if none is named")
    return top
