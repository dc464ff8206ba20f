# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `nearmetal` and their options. PRIVATE to the collection."""

from __future__ import annotations

import argparse

from .._version import VERSION


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    about = "Look at what nearmetal.ec2 tuned on this host, set it again, or take it back."
    top = argparse.ArgumentParser(prog="nearmetal", description=about)
    top.add_argument("--version", action="version", version=f"nearmetal.ec2 {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")

    status = command("status", "show what is tuned, by which run, what has changed since, and how to take it back")
    status.add_argument("--json", action="store_true", help="print JSON")
    plan = command("plan", "show what reapply would change, and change nothing")
    plan.add_argument("--from", dest="file", metavar="FILE", help="show what tune would change on a captured host")
    plan.add_argument("--workload", help="with --from: plan these workloads (web,cache, or auto), not the host's own")
    plan.add_argument("--program", help="with --from: plan for these programs too (redis,mongodb=8.0, or auto)")
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--commands", action="store_true", help="print shell commands that would do the same")
    topology = command("topology", "print a picture (SVG) of CPUs, caches, nodes, NICs, disks and queues")
    topology.add_argument("--from", dest="file", metavar="FILE", help="draw a captured host")
    topology.add_argument("--workload", help="with --from: also draw it after tuning for these (web,cache, or auto)")
    reapply = command("reapply", "set the wanted values again, planned for the size that the host has now")
    reapply.add_argument("--if-changed", action="store_true", help="only if queues, interrupts, CPUs or disks changed")
    command("confirm", "keep a network change that waits for confirmation")
    expire = command("expire", "run by a timer: take back what nobody confirmed, or what prove doesn't go on with")
    expire.add_argument("timer", choices=("dead-man", "prove"))
    command("capture", "print the files that a plan reads on this host as one JSON document, for a bug report")
    restore = command("restore", "take back what was tuned: the named concerns, or everything")
    restore.add_argument("concern", nargs="*", help="a concern such as clocksource; without one, everything")
    return top
