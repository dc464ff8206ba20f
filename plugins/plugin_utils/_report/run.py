# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run that a report is about: its time, its command line, and what the tasks of audit_report say. PRIVATE."""

from __future__ import annotations

import configparser
import json
import os
import re
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, Optional, Set, Tuple, TypeVar

import yaml
from ansible import constants as C
from ansible import context
from ansible.parsing.splitter import parse_kv

from ...module_utils._error import NearmetalError
from .._ansible.plays import AUDIT, REPORT, TUNE, checks_role_options, is_of_collection, module_of
from .._ansible.variables import options_of
from .._clean import text
from .._files import ELSEWHERE, short_path
from . import document, history, model
from .collect import Collector
from .commands import PROGRAM, asked
from .model import HostReport, Past, Run

# Playbooks that audit what another playbook changes.
AUDITS = {AUDIT: TUNE, "nearmetal.ec2.cloud_audit": TUNE}
# How a run logs in, as its command line says: the option, what Ansible calls it, and its default.
_LOGIN = (
    ("-c", "connection", C.DEFAULT_TRANSPORT),
    ("-u", "remote_user", C.DEFAULT_REMOTE_USER),
    ("-k", "ask_pass", C.DEFAULT_ASK_PASS),
    ("-b", "become", C.DEFAULT_BECOME),
    ("--become-user", "become_user", C.DEFAULT_BECOME_USER),
    ("-K", "become_ask_pass", C.DEFAULT_BECOME_ASK_PASS),
)
_Loaded = TypeVar("_Loaded")
NOTHING_PLANNED = "No report written: no host was planned"
# Extra variables that a command repeats, beside the options of tune: none that may hold a secret.
_SHOWN = ("restore_concerns", "target", "tune_serial", "ansible_connection", "ansible_port", "ansible_user")
_HIDDEN = ("tune_health_command",)
_LONGEST = 1000  # characters of a value that a command repeats
# The setting of the callback that has no variable, and what people write for it.
_SECTION, _SETTING = "nearmetal", "report_directory"
_LIKE_SETTING = re.compile(r"(?i)(?:nearmetal_)?(?:(?:audit|tune)_)?reports?_?(?:dir|directory|folder|path)")
_PLAIN = re.compile(r"[A-Za-z0-9_.]{1,64}%?(?:,[A-Za-z0-9_.]{1,64}%?){0,15}", re.ASCII)


class Clock:
    """The time at which the run began, for the head of the report."""

    def __init__(self) -> None:
        self._started = datetime.now(timezone.utc)
        self._ticks = time.monotonic()
        self._imported = True  # whether all plays so far are the collection's, as they stand in its playbooks

    def saw(self, play: Any) -> None:
        """Remember whose play this is: `import_playbook` with variables gives them to the play."""
        self._imported = self._imported and is_of_collection(play) and not play.vars

    def run(self, mode: str) -> Run:
        """The run as of now."""
        inventory = [str(source) for source in context.CLIARGS.get("inventory") or ()]
        standard = [str(source) for source in C.DEFAULT_HOST_LIST]
        inventory = [short_path(source) for source in inventory if source not in standard]
        command, beside = _fix_command(mode, inventory, self._imported)
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
            checked=bool(context.CLIARGS.get("check")) and not _only_audits(),
        )


def _fix_command(mode: str, inventory: Iterable[str], imported: bool) -> Tuple[Tuple[str, ...], str]:
    """The command that applies what this run showed, and a note on it."""
    line = context.CLIARGS
    started = list(map(str, line.get("args") or ()))
    playbooks = [AUDITS.get(name, name) for name in started]
    notes, is_audit = [], mode == "audit" and not line.get("check")
    if is_audit and not _only_audits():
        # A playbook of the user's, which has the role audit: tune does the same with what that playbook sets.
        playbooks, notes = [TUNE], [f"with the variables of {', '.join(map(short_path, started))}"] * (not imported)
    words = [PROGRAM, *map(short_path, playbooks)]
    words += [word for source in inventory for word in ("-i", source)]
    for option, key, default in _LOGIN:
        if line.get(key) and line[key] != default:
            words += [option] if line[key] is True else [option, str(line[key])]
    words += [word for extra in _extra(map(str, line.get("extra_vars") or ())) for word in ("-e", extra)]
    for option, key, usual in (("--tags", "tags", ["all"]), ("--skip-tags", "skip_tags", [])):
        tags = list(map(str, line.get(key) or ()))
        words += [option, ",".join(tags)] if tags != usual and playbooks == started else []
    return tuple(words), " and ".join(notes)


def only_mistakes(mistaken: Collection[str], collector: Collector) -> bool:
    """Whether all hosts that were reached, those `mistaken`, had a mistake in their options: nothing to report."""
    failed = collector.names(model.FAILED)
    return bool(failed) and set(failed) == set(mistaken) and not collector.count(model.REPORTED)


def ineffective() -> Iterator[str]:
    """A sentence for each name that is nearly that of the report directory's setting, and that nothing reads."""
    known = f"{_SECTION}_{_SETTING}".upper()
    for name in os.environ:
        if name.startswith(f"{_SECTION}_".upper()) and name != known and _LIKE_SETTING.fullmatch(name):
            yield f"{name} in the environment has no effect: {ELSEWHERE}"
    file = configparser.ConfigParser(interpolation=None, strict=False)
    with suppress(OSError, ValueError, configparser.Error):
        file.read(getattr(C, "CONFIG_FILE", None) or (), encoding="utf-8")
    for name in file.options(_SECTION) if file.has_section(_SECTION) else ():
        if name != _SETTING:
            yield f"{name} below [{_SECTION}] in ansible.cfg has no effect: {ELSEWHERE}"
    for name in (name for words in context.CLIARGS.get("extra_vars") or () for name in _variables(str(words))):
        if _LIKE_SETTING.fullmatch(str(name)):
            yield f"the variable {name} has no effect: {ELSEWHERE}"


def _only_audits() -> bool:
    return AUDITS.keys() >= set(map(str, context.CLIARGS.get("args") or ()))


def _extra(given: Iterable[str]) -> Iterable[str]:
    """The extra variables for a command: those that say what is tuned, and the names of others, which may be secret."""
    words: Dict[str, str] = {}
    for name, value in ((name, value) for group in given for name, value in _variables(group).items()):
        named = ",".join(map(str, value)) if isinstance(value, list) else str(value).replace(", ", ",")
        typed = json.dumps({name: value}, ensure_ascii=False, default=str)
        words.pop(name, None)
        if name.startswith("@"):
            words[name] = f"@{short_path(name[1:])}"
        elif name.startswith("audit_"):
            pass  # changes nothing in a run of tune
        elif name in _HIDDEN or name not in (*_SHOWN, *options_of("tune")) or len(typed) > _LONGEST:
            words[name] = asked(name)
        else:
            words[name] = f"{name}={named}" if _PLAIN.fullmatch(named) and not isinstance(value, bool) else typed
    return words.values()


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


def _version() -> str:
    root = Path(__file__).parents[3]
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
        self._mistaken: Set[str] = set()  # hosts with a mistake in their options
        self._baseline = ""
        self.history = ""  # the directory of earlier audits

    def take(self, result: Any) -> bool:
        """Whether the result belongs to such a task; if so, remember the arguments of the last one."""
        if module_of(result.task) != REPORT:
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

    def note(self, result: Any) -> None:
        """Remember a host that failed because of a mistake in its options."""
        if checks_role_options(result.task) or result.result.get("mistake") is True:
            self._mistaken.add(result.host.get_name())

    def refuses(self, collector: Collector) -> bool:
        """Whether mistakes in options are all that the run found."""
        return self.refused or only_mistakes(self._mistaken, collector)

    def earlier_audits(self) -> Tuple[Past, ...]:
        """The earlier audits; none without a directory of them, or when it can't be read."""
        return self._loaded(history.load, self.history) or ()

    def earlier_report(self) -> Optional[Tuple[str, Tuple[HostReport, ...]]]:
        """The earlier report to compare with; None without one or when it can't be read."""
        return self._loaded(document.load, self._baseline)

    def _loaded(self, load: Callable[[str], _Loaded], path: str) -> Optional[_Loaded]:
        try:
            return load(path) if path else None
        except NearmetalError as error:
            self.complaint = str(error)
            return None
