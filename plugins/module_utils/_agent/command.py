# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `nearmetal` on a host: status, plan, topology, reapply, restore, capture. PRIVATE to the collection.

The unit runs `reapply --if-changed`; people run the rest, without a controller.
"""

from __future__ import annotations

import io
import sys

from .._error import NearmetalError
from .._host.host import WritableHost
from .output import print_error, print_line

FAILED = 1  # also a status that isn't as wanted: docs/unit.md has the table of all
NO_RIGHT = 77  # EX_NOPERM of sysexits.h: only root may read what the command needs
INTERRUPTED = 128 + 2  # by SIGINT, as shells count it
LOOK = ["reapply", "--if-changed"]  # what the timer runs


def main(arguments: list[str] | None = None, host: WritableHost | None = None) -> int:
    """Run one command; 0 when it did what it is for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A console without Unicode shows ? for an arrow.
            stream.reconfigure(errors="replace")
    arguments = sys.argv[1:] if arguments is None else arguments
    host = host or WritableHost()
    try:
        if arguments == LOOK and host.is_root():
            from . import watch

            return watch.reapply(host, if_changed=True)
        # Only now, so that the timer's look costs no more than it must.
        from .command_line import parser

        options = parser().parse_args(arguments)
        if options.command == "plan" and options.file:
            from . import replay

            return replay.plan_from(options)
        for option in ("workload", "program", "allow_not_ec2"):
            if getattr(options, option, None) not in (None, False) and not options.file:
                name = option.replace("_", "-")
                raise NearmetalError(f"--{name} plans a captured host: name its file with --from")
        if options.command == "topology":
            from . import topology

            return topology.show(host, options.file, options.workload, options.text or sys.stdout.isatty())
        if options.command == "completion":
            from .command_line import completion

            print_line(completion())
            return 0
        if not host.is_root():
            print_error("nearmetal: the journal is readable by root alone: run it with sudo")
            return NO_RIGHT
        if options.command == "reapply":
            from . import watch

            return watch.reapply(host, options.if_changed)
        from . import subcommands

        if options.command == "status":
            return subcommands.status(host, options.json)
        if options.command == "plan":
            return subcommands.plan(host, options.json, options.commands)
        if options.command == "capture":
            return subcommands.capture(host)
        if options.command == "confirm":
            return subcommands.confirm(host)
        if options.command == "expire":
            return subcommands.expire(host, options.timer)
        restore = subcommands.preview_restore if options.check else subcommands.restore
        return restore(host, options.concern or None)
    except NearmetalError as error:
        print_error(f"nearmetal: {error}")
        return FAILED
    except KeyboardInterrupt:
        print_error("nearmetal: interrupted; the journal has what was begun: run it again, or `nearmetal restore`")
        return INTERRUPTED


# Where no agent is installed, only the collection: python3 -m …module_utils._agent.command plan --from FILE
if __name__ == "__main__":
    raise SystemExit(main())
