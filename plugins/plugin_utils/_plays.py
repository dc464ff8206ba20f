# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's plays, tasks and command line, as the callback and actions need them. PRIVATE to the collection."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import yaml
from ansible import constants as C
from ansible import context
from ansible.parsing.splitter import parse_kv

from ..module_utils._error import NearmetalError
from ._report import document, history
from ._report.clean import text
from ._report.collect import follows_contract
from ._report.model import HostReport, Past, Run
from ._report.summary import COLLECTION, PROGRAM, TUNE

RESTORE = "nearmetal.ec2.restore"
AUDIT = "nearmetal.ec2.audit"
REPORT = "nearmetal.ec2.audit_report"
# Modules without findings: a play with only these has nothing to report.
PROVE = "nearmetal.ec2.prove"
BENCHMARK = "nearmetal.ec2.benchmark"
NO_FINDINGS = (REPORT, BENCHMARK, "nearmetal.ec2.capture", "nearmetal.ec2.confirm", PROVE)
CALLBACK = "nearmetal.ec2.fleet"
VALIDATION = "ansible.builtin.validate_argument_spec"
# Playbooks that audit what another playbook changes.
AUDITS = {AUDIT: TUNE, "nearmetal.ec2.cloud_audit": TUNE}
_WORKLOAD = re.compile(r"[a-z0-9_]{1,64}(?:,[a-z0-9_]{1,64}){0,15}", re.ASCII)


def is_nearmetal_task(task: Any) -> bool:
    """Whether the task runs a module of this collection."""
    return str(getattr(task, "resolved_action", None) or task.action).startswith(COLLECTION)


def proves(task: Any) -> bool:
    """Whether the task compares two states of its host."""
    return str(task.resolved_action or task.action) == PROVE


def measures(task: Any) -> bool:
    """Whether the task runs a ready benchmark."""
    return str(task.resolved_action or task.action) == BENCHMARK


def checks_role_options(task: Any) -> bool:
    """Whether the task is Ansible's own check of the variables of a role of this collection."""
    role = getattr(task, "_role", None)
    return task.action == VALIDATION and role is not None and str(role.get_name()).startswith(COLLECTION)


def mode_of_task(task: Any) -> str:
    """audit, tune or restore; empty for tasks of other collections, and for tasks that only read or report."""
    action = str(task.resolved_action)
    if not is_nearmetal_task(task) or action in NO_FINDINGS or action.endswith(("_facts", "_info")):
        return ""
    if action == RESTORE:
        return "restore"
    return "audit" if task.check_mode else "tune"


def _mode_of_role(task: Any) -> str:
    """The mode of an include_role of nearmetal, whose tasks are unknown before it runs; empty for any other task."""
    role = str(task.args.get("name") or task.args.get("role") or "") if task.action in C._ACTION_INCLUDE_ROLE else ""
    if not role.startswith(COLLECTION):
        return ""
    if role in (AUDIT, RESTORE):
        return role[len(COLLECTION) :]
    applied = task.args.get("apply")
    is_audit = task.check_mode or (isinstance(applied, dict) and applied.get("check_mode") is True)
    return "audit" if is_audit else "tune"


def tunes(task: Any) -> str:
    """The mode of a task that changes or audits its host, or of an include_role that does; else empty."""
    return mode_of_task(task) or _mode_of_role(task)


def mode_of(play: Any) -> str:
    """The mode of the play's first task that changes or audits hosts; empty when it has none."""
    modes = (tunes(task) for block in play.compile() for task in _tasks(block))
    return next((mode for mode in modes if mode), "")


def no_task() -> str:
    """Why a run began no task of nearmetal, as a sentence; empty when tags can't be the cause."""
    tags = [tag for tag in map(str, context.CLIARGS.get("tags") or ()) if tag != "all"]
    skipped = list(map(str, context.CLIARGS.get("skip_tags") or ()))
    if not tags and not skipped:
        return ""
    if tags:
        return f"No report written: no task of {COLLECTION[:-1]} in this run has these tags: {text(', '.join(tags))}"
    return f"No report written: --skip-tags leaves no task of {COLLECTION[:-1]} in this run: {text(', '.join(skipped))}"


def error_of_loop(result: Mapping[str, Any]) -> str:
    """The error of the last item of a loop that failed without a report; empty when there is none."""
    items = [item for item in result.get("results") or () if isinstance(item, Mapping) and not follows_contract(item)]
    # Since 2.21 Ansible keeps only the exception of a failed item.
    failed = [item for item in items if item.get("failed") is True or "exception" in item]
    return str(failed[-1].get("msg") or "failed") if failed else ""


def combined_mode(earlier: str, mode: str) -> str:
    """The mode of a run of several plays: the last mode that changes hosts, or else audit."""
    return earlier if earlier and mode in ("", "audit") else mode


def _tasks(block: Any) -> Iterator[Any]:
    for part in (block.block, block.rescue, block.always):
        for entry in part:
            if hasattr(entry, "rescue"):
                yield from _tasks(entry)
            else:
                yield entry


def hosts_of(play: Any) -> List[str]:
    """All hosts of the play, those of later batches of `serial` included."""
    return [str(name) for name in play.get_variable_manager().get_vars(play=play).get("ansible_play_hosts_all", [])]


def columns() -> int:
    """The width of the terminal; 80 in a log unless COLUMNS says otherwise."""
    return shutil.get_terminal_size((80, 24)).columns


def brief(paths: Iterable[str]) -> str:
    """`nearmetal-report/report.json report.md`, the directory once."""
    names = list(paths)
    directory = os.path.relpath(os.path.dirname(names[0]))
    path = directory if not directory.startswith("..") else os.path.dirname(names[0])
    return f"{path}/ {' '.join(os.path.basename(name) for name in names)}"


class Clock:
    """The time at which the run began, for the head of the report."""

    def __init__(self) -> None:
        self._started = datetime.now(timezone.utc)
        self._ticks = time.monotonic()

    def run(self, mode: str) -> Run:
        """The run as of now."""
        inventory = [str(source) for source in context.CLIARGS.get("inventory") or ()]
        standard = [str(source) for source in C.DEFAULT_HOST_LIST]
        inventory = [short_path(source) for source in inventory if source not in standard]
        command, beside = _fix_command(mode, inventory)
        return Run(
            mode=mode,
            started=_stamp(self._started),
            finished=_stamp(datetime.now(timezone.utc)),
            seconds=round(time.monotonic() - self._ticks, 3),
            collection=_version(),
            inventory=tuple(inventory),
            command=command,
            limit=str(context.CLIARGS.get("subset") or ""),
            beside=beside,
        )


def _fix_command(mode: str, inventory: Iterable[str]) -> Tuple[Tuple[str, ...], str]:
    """The command that applies what this run showed, and a note on it; or no command, and a sentence in its place."""
    line = context.CLIARGS
    started = list(map(str, line.get("args") or ()))
    playbooks = [AUDITS.get(name, name) for name in started]
    is_audit = mode == "audit" and not line.get("check")
    if is_audit and not AUDITS.keys() >= set(started):
        return (), f"use tune in place of audit in {', '.join(map(short_path, started))}"
    workload, complete = _extra(map(str, line.get("extra_vars") or ()))
    words = [PROGRAM, *map(short_path, playbooks)]
    words += [word for source in inventory for word in ("-i", source)]
    words += ["-e", f"tune_workload={workload}"] if workload else []
    for option, key, usual in (("--tags", "tags", ["all"]), ("--skip-tags", "skip_tags", [])):
        tags = list(map(str, line.get(key) or ()))
        words += [option, ",".join(tags)] if tags != usual and playbooks == started else []
    return tuple(words), "" if complete else "with the same -e options"


def _extra(given: Iterable[str]) -> Tuple[str, bool]:
    """The workload among the extra variables, and whether the others can be left out, which may hold a secret."""
    workload, complete = "", True
    for words in given:
        for name, value in _variables(words).items():
            named = ",".join(map(str, value)) if isinstance(value, list) else str(value).replace(", ", ",")
            if name == "tune_workload" and _WORKLOAD.fullmatch(named):
                workload = named
            else:
                # Variables of an audit change nothing in a run of tune.
                complete = complete and name.startswith("audit_")
    return workload, complete


def _variables(words: str) -> Dict[str, Any]:
    """Extra variables as they were written; a file counts as one unknown variable."""
    if not words.startswith(("{", "[", "@")):
        return dict(parse_kv(words))
    try:
        variables = yaml.safe_load(words)
    except yaml.YAMLError:
        variables = None
    return variables if isinstance(variables, dict) else {words: None}


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def short_path(source: str) -> str:
    """A path as a user types it in the current folder."""
    if not os.path.isabs(source):
        return source
    relative = os.path.relpath(source)
    return source if relative.startswith("..") else relative


def _version() -> str:
    root = Path(__file__).parents[2]
    try:
        if (root / "MANIFEST.json").exists():
            return str(json.loads((root / "MANIFEST.json").read_text())["collection_info"]["version"])
        return str(yaml.safe_load((root / "galaxy.yml").read_text())["version"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return ""  # a report without the version is still a report


class GateTask:
    """The arguments of the tasks at the begin and the end of an audit: `audit_fail_on` and `audit_baseline`."""

    def __init__(self) -> None:
        self.statuses: Tuple[str, ...] = ()
        self.complaint = ""
        self.refused = False  # whether a mistake in them ended the run before a host was asked
        self._baseline = ""
        self.history = ""  # the directory of earlier audits

    def take(self, result: Any) -> bool:
        """Whether the result belongs to such a task; if so, remember the arguments of the last one."""
        if str(result.task.resolved_action) != REPORT:
            return False
        if "failure" in result.task.args:
            return True
        if result.task.args.get("only_check"):
            self.refused = "msg" in result.result
            return True
        statuses = result.result.get("fail_on")
        if isinstance(statuses, list):
            self.statuses = tuple(map(str, statuses))
            self._baseline = str(result.result.get("baseline") or "")
            self.history = str(result.result.get("history") or "")
        else:
            self.complaint = text(result.result.get("msg", ""))
        return True

    def earlier_audits(self) -> Tuple[Past, ...]:
        """The earlier audits; none without a directory of them, or when it can't be read."""
        try:
            return history.load(self.history) if self.history else ()
        except NearmetalError as error:
            self.complaint = str(error)
            return ()

    def earlier_report(self) -> Optional[Tuple[str, Tuple[HostReport, ...]]]:
        """The earlier report to compare with; None without one or when it can't be read."""
        try:
            return document.load(self._baseline) if self._baseline else None
        except NearmetalError as error:
            self.complaint = str(error)
            return None
