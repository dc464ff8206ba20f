# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that a report names, as they are pasted into a shell, and the files of hosts beside it. PRIVATE."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
from typing import Dict, Iterable, Sequence, Tuple

from .._ansible.plays import COLLECTION
from . import model
from .headings import BY_API
from .model import Report

LIMIT = 3  # hosts that a command names; more are in a file beside the reports
HOSTS_FILE = re.compile(r"hosts-[0-9a-f]{12}\.txt")
PROGRAM = "ansible-playbook"
_EXCLUDE = "tune_exclude="
_PATH = re.compile(r"[^\s,:;\[\]]+")  # a path that --limit doesn't split
_ASKED = re.compile(r"(\w+)=(\$\{\w+:\?\})", re.ASCII)


def asked(name: str) -> str:
    """The word for a variable whose value is shown nowhere: a shell that doesn't have it says so, and runs nothing."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{name}=${{{name}:?}}"


def join(words: Iterable[str]) -> str:
    """The words as a shell takes them."""
    found = [(word, _ASKED.fullmatch(word)) for word in words]
    return " ".join(f'{match[1]}="{match[2]}"' if match else shlex.quote(word) for word, match in found)


def fix_command(report: Report, hosts: Tuple[str, ...], only: str = "", without: Sequence[str] = ()) -> str:
    """The command that applies what the run showed, on these hosts only; a sentence where no command does.

    With `only`, a concern or `concern.knob`, it applies nothing else, and it leaves out the knobs of `without`, if its
    playbooks are the collection's.
    """
    run = report.run
    if not run.command:
        return run.beside
    in_file = len(hosts) > LIMIT and _PATH.fullmatch(report.directory)
    limit = f"@{os.path.join(report.directory, hosts_file(hosts))}" if in_file else ",".join(hosts)
    playbooks = itertools.takewhile(lambda word: not word.startswith("-"), run.command[1:])
    limited = run.mode != "restore" and not any(word.startswith("tune_only=") for word in run.command)
    limited = limited and all(playbook.startswith(COLLECTION) for playbook in playbooks)
    excluded = [word[len(_EXCLUDE) :] for word in run.command if word.startswith(_EXCLUDE)] if without else []
    more = f"tune_only={only}" if only else _EXCLUDE + ",".join((*excluded, *without)) if without else ""
    words = join([*run.command, "--limit", limit, *(["-e", more] if limited and more else [])])
    # No shell accepts the brackets, so nobody runs the command without what they ask for.
    return f"{words} ({run.beside})" if run.beside else words


def changing(report: Report) -> Tuple[str, ...]:
    """The hosts on which tune would change anything."""
    hosts = (
        host.name
        for host in report.hosts
        for finding in host.findings
        if finding.status == "would_change" and finding.concern not in BY_API
    )
    return tuple(dict.fromkeys(hosts))


def left(report: Report) -> Tuple[str, ...]:
    """The hosts that a way back has left as they are, or not wholly restored."""
    if not report.restores or report.run.checked:
        return ()
    return tuple(host.name for host in report.hosts if host.state not in (model.REPORTED, model.SKIPPED))


def finishing(report: Report) -> str:
    """The command that restores what is left; empty where nothing is."""
    hosts = left(report)
    return fix_command(report, hosts) if hosts else ""


def hosts_file(hosts: Tuple[str, ...]) -> str:
    """The name of the file of these hosts. Its content never changes: an older command finds its own hosts, or none."""
    return f"hosts-{hashlib.sha256(os.fsencode(','.join(hosts))).hexdigest()[:12]}.txt"


def hosts_files(report: Report, commands: Iterable[Tuple[Tuple[str, ...], str]]) -> Dict[str, str]:
    """The files of host names that these commands for hosts, and those of the whole report, need, by name."""
    wholes = ((hosts, fix_command(report, hosts)) for hosts in (changing(report), left(report)) if hosts)
    named = {hosts for hosts, command in (*commands, *wholes) if hosts_file(hosts) in command}
    return {hosts_file(hosts): "".join(f"{host}\n" for host in hosts) for hosts in named}


def preview(fix: str) -> str:
    """The command that shows what a fix would do, as differences, and changes nothing; empty without a command."""
    if not is_command(fix) or fix.endswith(")"):
        return ""
    return f"{fix} --check --diff"


def is_command(fix: str) -> bool:
    """Whether a fix is a command to copy into a shell."""
    return fix.startswith(f"{PROGRAM} ")
