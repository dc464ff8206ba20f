# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the options of a run ask for: its load and its settings. PRIVATE to the collection."""

from __future__ import annotations

import os
import secrets
from typing import Any, Mapping

from ...module_utils._benchmark.tools import registry
from ...module_utils._benchmark.tools.pair import CLIENT, SERVER
from ...module_utils._error import NearmetalError
from ...module_utils._planning.options import validate
from ...module_utils._prove.host.proving import CONTROLLER, HOST, OPTIONS
from ...module_utils._prove.statistics.settings import Settings, settings_of
from ...module_utils._words import shown
from . import knee

_LONGEST_PROGRAM = 15  # bytes of a name in /proc/PID/comm (TASK_COMM_LEN in include/linux/sched.h, with a final 0)


def load_of(options: Mapping[str, Any], seconds: float) -> str:
    """The load that the options ask for, a command or a ready benchmark. Raises NearmetalError."""
    command, benchmark = options.get("command"), options.get("benchmark")
    if bool(command) == bool(benchmark):
        raise NearmetalError(
            "prove.command or prove.benchmark is required, and not both: the load of one measurement is a command of"
            " yours or a ready benchmark"
        )
    if not benchmark:
        if options["benchmark_options"]:
            raise NearmetalError(
                f"prove.benchmark_options has {shown(min(map(str, options['benchmark_options'])))}, but no benchmark is"
                " named: set prove.benchmark, or leave out its options"
            )
        return str(command)
    if options["timed"]:
        raise NearmetalError(f"prove.benchmark {benchmark} has figures of its own: leave out prove.timed")
    load = registry.load_of(benchmark, options["benchmark_options"], seconds)
    part = options["benchmark_options"].get("part")
    here = options["load_on"] == [HOST]
    if here == (part == CLIENT) or CONTROLLER in options["load_on"] or part == SERVER:
        raise NearmetalError(
            f"prove.benchmark {benchmark} with the part {part or 'both'} can't run on"
            f" {shown(', '.join(options['load_on']))}: a benchmark runs on the host under test (leave out"
            " prove.load_on), and the part client on other hosts of the inventory, whose names prove.load_on (prove_on"
            " in the role) has"
        )
    return load


def require_runnable(options: Mapping[str, Any]) -> None:
    """Raise NearmetalError for commands that no shell can run, and programs that no process can be called."""
    for name in ("command", "health", "restart"):
        text = str(options[name] or "")
        if "\0" in text or (text and not text.strip()):
            raise NearmetalError(f"prove.{name} must be a command for /bin/sh, not {shown(text)}")
    if options["restart"] and options["reboot"]:
        raise NearmetalError("prove.restart and prove.reboot exclude each other: a boot starts all programs anew")
    if options["profile"] and (options["reboot"] or options["load_on"] != [HOST]):
        raise NearmetalError(
            "prove.profile needs a load on the host itself, and no reboots: leave out prove.load_on (prove_on in the"
            " role) and prove.reboot"
        )
    for named, program in [(option, name) for option in ("programs", "tolerate") for name in options[option]]:
        own_name = os.fsencode(program.rpartition("/")[2])[:_LONGEST_PROGRAM].decode("utf-8", "ignore")
        if program != own_name or not program.isprintable() or not program.strip():
            hint = f": name it {shown(own_name)}" if own_name.strip() and own_name.isprintable() else ""
            raise NearmetalError(
                f"prove.{named} has {shown(program)}; it must be names as in /proc/PID/comm, of at most"
                f" {_LONGEST_PROGRAM} bytes and without their folder{hint}"
            )


def require_right(given: Mapping[str, Any]) -> None:
    """Raise NearmetalError for options of the role prove with which no run begins."""
    known = {name: given[name] for name in given if name in OPTIONS}
    options = validate("prove", OPTIONS, {**known, "load_on": given.get("on")})
    load_of(options, settings(options).seconds)
    require_runnable(options)


def settings(options: Mapping[str, Any]) -> Settings:
    """The settings, with a seed. Raises NearmetalError that names the option, its value and what is allowed."""
    given = {name: options[name] for name in Settings._fields if name in options}
    given.setdefault("seed", secrets.randbelow(2**32))
    if options.get("at_knee"):
        knee.require_rated(options)
        given["primary"] = given.get("primary") or knee.PRIMARY[options["benchmark"]]
    try:
        return settings_of(given)
    except NearmetalError as error:
        raise NearmetalError(f"prove.{error}") from None
