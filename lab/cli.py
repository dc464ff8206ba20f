# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the lab."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from lab import architecture, clock, deps, shape
from lab.error import LabError
from lab.host import instance, inventory, planned
from lab.progress import Progress

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 1 after an error, 130 after Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    parsed = _parser().parse_args(arguments)
    try:
        return _COMMANDS[parsed.command](parsed)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted; nothing is left of what was being done", file=sys.stderr)
        return _INTERRUPTED


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    command = add("up", "bring up a fresh host of a shape")
    command.add_argument("shape", help="a name from `list` or the path of a .toml file")
    command.add_argument("--as", dest="name", help="the host's name, by default the shape's")
    command.add_argument("--json", action="store_true", help="print how to reach it as JSON")
    command = add("down", "end hosts and remove their files")
    command.add_argument("names", nargs="*", metavar="NAME")
    command.add_argument("--all", action="store_true", help="all hosts of this checkout")
    command = add("resize", "power a host off and start its disks as another shape")
    command.add_argument("name", metavar="NAME")
    command.add_argument("shape", metavar="SHAPE", help="a name from `list` or the path of a .toml file")
    command.add_argument("--json", action="store_true", help="print how to reach it as JSON")
    command = add("ssh", "log in, or run a command")
    command.add_argument("--user", help="root by default; admin may use sudo")
    command.add_argument("--dom0", action="store_true", help="the control domain below a Xen guest")
    command.add_argument("name", metavar="NAME")
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    add("log", "print the serial console of a host").add_argument("name", metavar="NAME")
    add("snapshot", "build what a shape's hosts start from").add_argument("shapes", nargs="+", metavar="SHAPE")
    add("list", "show the shapes and the running hosts")
    command = add("monitor", "run a line in a host's QEMU monitor")
    command.add_argument("name", metavar="NAME")
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    command = add("inventory", "print an Ansible inventory of running hosts, or an ssh configuration")
    command.add_argument("--ssh-config", action="store_true")
    command.add_argument("names", nargs="*", metavar="NAME", help="all that run, if none is named")
    command = add("clock", "measure what one clock read costs on a host")
    command.add_argument("--json", action="store_true", help="print it as JSON")
    command.add_argument("name", metavar="NAME")
    add("planned", "wait until the unit of a host has planned for this boot").add_argument("name", metavar="NAME")
    command = add("doctor", "say what this machine lacks")
    command.add_argument("--install", action="store_true", help="install it with apt")
    command.add_argument("--architecture", choices=architecture.BY_NAME, default=architecture.AMD64.name)
    return parser


def _up(parsed: argparse.Namespace) -> int:
    started = time.monotonic()
    progress = Progress()
    name = parsed.name or shape.load(parsed.shape).name
    host = instance.up(parsed.shape, name, progress=progress)
    progress.say(
        f"{host.name} is up after {time.monotonic() - started:.1f} s; log in: "
        f"python3 -m lab ssh {host.name}; end it: python3 -m lab down {host.name}"
    )
    if parsed.json:
        print(json.dumps(dataclasses.asdict(host)))
    return 0


def _resize(parsed: argparse.Namespace) -> int:
    host = instance.resized(instance.find(parsed.name), parsed.shape)
    if parsed.json:
        print(json.dumps(dataclasses.asdict(host)))
    return 0


def _down(parsed: argparse.Namespace) -> int:
    if parsed.all == bool(parsed.names):
        raise LabError("down takes the names of hosts, or --all")
    absent = [name for name in parsed.names or instance.names() if not instance.down(name)]
    if absent:
        raise LabError(f"no host is called {', '.join(absent)}; see: python3 -m lab list")
    return 0


def _ssh(parsed: argparse.Namespace) -> int:
    host = instance.find(parsed.name)
    command = [*(host.dom0() if parsed.dom0 else host).ssh(parsed.user), *parsed.words]
    os.execvp(command[0], command)


def _log(parsed: argparse.Namespace) -> int:
    sys.stdout.write(instance.find(parsed.name).console.read_text(encoding="utf-8", errors="replace"))
    return 0


def _snapshot(parsed: argparse.Namespace) -> int:
    for name in parsed.shapes:
        if instance.snapshot(name, Progress()) is None:
            raise LabError(f"{name}: QEMU can't save a host with an NVMe disk; its hosts boot every time")
    return 0


def _list(parsed: argparse.Namespace) -> int:
    print("shapes:")
    for name in shape.names():
        print(f"  {name:12} {shape.load(name).about}")
    print("running hosts:")
    for host in instance.hosts():
        print(f"  {host.name:20} {host.shape:12} {shlex.join(host.ssh())}")
    return 0


def _monitor(parsed: argparse.Namespace) -> int:
    with instance.find(parsed.name).monitor() as monitor:
        print(monitor.human(" ".join(parsed.words)).rstrip("\n"))
    return 0


def _inventory(parsed: argparse.Namespace) -> int:
    hosts = [instance.find(name) for name in parsed.names] or list(instance.hosts())
    sys.stdout.write(inventory.ssh_config(hosts) if parsed.ssh_config else inventory.ansible(hosts))
    return 0


def _clock(parsed: argparse.Namespace) -> int:
    cost = clock.measure(instance.find(parsed.name))
    if parsed.json:
        print(json.dumps(dataclasses.asdict(cost)))
    else:
        print(
            f"{cost.source}: {cost.ns_per_read:.0f} ns per read; "
            f"{cost.system_calls} system calls for {clock.READS} reads, {cost.clock_calls} of them for the clock"
        )
    return 0


def _planned(parsed: argparse.Namespace) -> int:
    print(planned.wait(instance.find(parsed.name)))
    return 0


def _doctor(parsed: argparse.Namespace) -> int:
    wanted = architecture.BY_NAME[parsed.architecture]
    if parsed.install:
        deps.install(wanted)
    deps.require(wanted)
    print("lab: nothing is missing", file=sys.stderr)
    return 0


_COMMANDS = {
    "up": _up,
    "down": _down,
    "resize": _resize,
    "ssh": _ssh,
    "log": _log,
    "snapshot": _snapshot,
    "list": _list,
    "monitor": _monitor,
    "inventory": _inventory,
    "clock": _clock,
    "planned": _planned,
    "doctor": _doctor,
}
