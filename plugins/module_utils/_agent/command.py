# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `nearmetal` on a host: status, plan, reapply, restore, capture. PRIVATE to the collection.

The unit runs `reapply --if-changed`; people run the rest, without a controller.
"""

from __future__ import annotations

import argparse
import io
import sys
from typing import List, Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import watch
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.say import complain
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

# sysexits.h has no better: a command that changed nothing because it could not.
FAILED = 1


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="nearmetal", description="What nearmetal.ec2 keeps tuned on this host.")
    top.add_argument("--version", action="version", version=f"nearmetal.ec2 {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="status|plan|reapply|confirm|restore|capture")
    status = commands.add_parser("status", help="what is tuned, by which run, what drifted, how to take it back")
    status.add_argument("--json", action="store_true", help="the same for programs")
    plan = commands.add_parser("plan", help="what reapply would change; changes nothing")
    plan.add_argument("--from", dest="file", metavar="FILE", help="what tune would change on a captured host")
    plan.add_argument("--workload", help="with --from: these (web,cache), or auto, instead of what that host wanted")
    plan.add_argument("--json", action="store_true", help="the same for programs")
    reapply = commands.add_parser("reapply", help="set again what was wanted, for the size that the host has now")
    reapply.add_argument("--if-changed", action="store_true", help="only when queues, interrupts, CPUs or disks did")
    commands.add_parser("confirm", help="the network change that waits for it may stay")
    commands.add_parser("dead-man", help="what the timer runs: put back a network change that nobody confirmed")
    commands.add_parser("capture", help="print what a plan asks of this host as one JSON file, for a bug report")
    restore = commands.add_parser("restore", help="take back one concern, or everything")
    restore.add_argument("concern", nargs="*", help="all of them when none is named")
    return top


def main(arguments: List[str], host: Optional[WritableHost] = None) -> int:
    """Run one command; 0 when it did what it is for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A console without Unicode shows ? for an arrow.
            stream.reconfigure(errors="replace")
    options = parser().parse_args(arguments)
    host = host or WritableHost()
    try:
        if options.command == "plan" and options.file:
            from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import replay

            return replay.plan_from(options.file, options.workload, options.json)
        if options.command == "plan" and options.workload is not None:
            raise NearmetalError("--workload plans a captured host: name its file with --from")
        if not host.is_root():
            raise NearmetalError("the journal is readable by root alone: run it with sudo")
        if options.command == "reapply":
            return watch.reapply(host, options.if_changed)
        # Only here, so that the timer's look costs no more than it must.
        from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import tell

        if options.command == "status":
            return tell.status(host, options.json)
        if options.command == "plan":
            return tell.plan(host, options.json)
        if options.command == "capture":
            return tell.capture(host)
        if options.command == "confirm":
            return tell.confirm(host)
        if options.command == "dead-man":
            return tell.dead_man(host)
        return tell.restore(host, options.concern or None)
    except NearmetalError as error:
        complain(f"nearmetal: {error}")
        return FAILED


# Where no agent is installed, only the collection: python3 -m …module_utils._agent.command plan --from FILE
if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
