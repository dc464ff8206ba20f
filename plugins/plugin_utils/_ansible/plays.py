# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's plays and tasks, as the callback and actions need them. PRIVATE to the collection."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Iterator, List

from ansible import constants as C
from ansible import context
from ansible.plugins.loader import callback_loader

from .._clean import text
from .._files import require_folder

COLLECTION = "nearmetal.ec2."
TUNE = "nearmetal.ec2.tune"
RESTORE = "nearmetal.ec2.restore"
AUDIT = "nearmetal.ec2.audit"
REPORT = "nearmetal.ec2.audit_report"
# Modules without findings: a play with only these has nothing to report.
PROVE = "nearmetal.ec2.prove"
ROLLOUT = "nearmetal.ec2.rollout"
BENCHMARK = "nearmetal.ec2.benchmark"
_OTHERS = ("nearmetal.ec2.profile", "nearmetal.ec2.capture", "nearmetal.ec2.confirm")
NO_FINDINGS = (REPORT, BENCHMARK, PROVE, ROLLOUT, *_OTHERS)
CALLBACK = "nearmetal.ec2.fleet"
VALIDATION = "ansible.builtin.validate_argument_spec"


def module_of(task: Any) -> str:
    """The module of this collection that the task runs, with the collection's name; empty for any other task.

    `resolved_action` is the action plugin, which several modules share.
    """
    resolved = str(getattr(task, "resolved_action", None) or task.action)
    return COLLECTION + task.action.rpartition(".")[2] if resolved.startswith(COLLECTION) else ""


def is_nearmetal_task(task: Any) -> bool:
    """Whether the task runs a module of this collection."""
    return bool(module_of(task))


def is_of_collection(play: Any) -> bool:
    """Whether the play stands in one of the collection's own playbooks."""
    return Path(str(play.get_path())).is_relative_to(Path(__file__).parents[3] / "playbooks")


def checks_role_options(task: Any) -> bool:
    """Whether the task is Ansible's own check of the variables of a role of this collection."""
    role = getattr(task, "_role", None)
    return task.action == VALIDATION and role is not None and str(role.get_name()).startswith(COLLECTION)


def refuses(task: Any, play: Any) -> bool:
    """Whether a task of the collection's own playbooks ends the run with a sentence."""
    return is_of_collection(play) and task.action.rpartition(".")[2] in ("assert", "fail")


def mode_of_task(task: Any) -> str:
    """audit, tune or restore; empty for tasks of other collections, and for tasks that only read or report."""
    module = module_of(task)
    if not module or module in NO_FINDINGS or module.endswith(("_facts", "_info")):
        return ""
    if module == RESTORE:
        return "restore"
    return "audit" if task.check_mode else "tune"


def _mode_of_role(task: Any) -> str:
    """The mode of an include_role of nearmetal, whose tasks are unknown before it runs; empty for any other task."""
    role = str(task.args.get("name") or task.args.get("role") or "") if task.action in C._ACTION_INCLUDE_ROLE else ""
    if not role.startswith(COLLECTION) or role in NO_FINDINGS:
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
    """Why a run planned no host, as a sentence; empty when its options can't be the cause."""
    line = context.CLIARGS
    options = (("--tags", line.get("tags")), ("--skip-tags", line.get("skip_tags")))
    causes = [f"{name} {','.join(map(str, tags))}" for name, tags in options if tags and list(tags) != ["all"]]
    causes += [f"--start-at-task {line['start_at_task']}"] if line.get("start_at_task") else []
    verb = "leaves" if len(causes) == 1 else "leave"
    words = text(f"{' and '.join(causes)} {verb} no task of {COLLECTION[:-1]} that plans a host")
    return f"No report written: {words}" if causes else ""


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


def report_directory() -> str:
    """The directory of the callback's reports: nothing else has a setting for it."""
    callback = callback_loader.get(CALLBACK)
    callback.set_options()
    return str(callback.get_option("report_directory"))


def require_report_directory(needed: int = 0) -> None:
    """Raise NearmetalError where reports of so many bytes couldn't be written once the hosts have been asked."""
    require_folder("report_directory", report_directory(), needed)
