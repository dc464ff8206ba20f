# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One sentence where a host's Python is absent or too old, or Ansible can't become root there. PRIVATE.

A module ends there before its first line, and Ansible says only that it found no JSON, or no sign of success.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Dict, List, Mapping, Tuple

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.release import __version__

from .._clean import text

# The oldest Python of this collection's modules, and that of hosts in the support matrix of ansible-core.
_OLDEST = (3, 7)
_OF_CORE = {(2, 16): (3, 6), (2, 17): (3, 7), (2, 18): (3, 8), (2, 19): (3, 8)}
_OF_NEWER_CORES = (3, 9)
_QUESTION = "import sys; print('Python %d.%d.%d' % sys.version_info[:3])"
_NOT_STARTED = (126, 127)  # how a shell, and env, end when there is no such program, or none that may be run
_OF_SHELL = re.compile(
    r"(?:\S*/)?(?:sh|bash|dash|ksh|zsh|env): |.*No such file or directory"
)  # what says only that there is no program
# How Ansible says that sudo, or another way to become root, didn't take the user.
_DENIED = re.compile(r"(?i)(?:missing|incorrect) \S+ password|waiting for (?:become success|privilege escalation)")
_ANSWER = re.compile(r"\bPython (\d{1,2})\.(\d{1,3})\.(\d{1,3})\b", re.ASCII)


def explained(action: ActionBase, result: Dict[str, Any], task_vars: Mapping[str, Any]) -> Dict[str, Any]:
    """The result of a module; where the host's Python is the cause of its failure, with a sentence that says so."""
    # Ansible adds what the module printed only where it could not read a result in it.
    if not result.get("failed") or "module_stdout" not in result:
        return result
    words = interpreter_words(getattr(action, "_used_interpreter", None) or task_vars.get("ansible_python_interpreter"))
    question = " ".join(map(shlex.quote, (*words, "-c", _QUESTION)))
    answer = action._low_level_execute_command(question)
    become = action._connection.become is not None and answer.get("rc") not in (0, *_NOT_STARTED)
    if become and action._low_level_execute_command(question, sudoable=False).get("rc") == 0:
        # The user who logs in gets an answer, and the one that Ansible would become doesn't.
        return {**result, "msg": _denial(action, str(answer.get("stderr")))}
    sentence = _no_way_up(action, answer) or cause(" ".join(words), answer, minimum())
    return {**result, "msg": sentence} if sentence else result


def _no_way_up(action: ActionBase, answer: Mapping[str, Any]) -> str:
    """That the host lacks the program with which Ansible becomes another user; empty when it doesn't, or needs none."""
    become = action._connection.become
    if become is None or answer.get("rc") not in _NOT_STARTED:
        return ""
    program = (shlex.split(become.get_option("become_exe") or "") or [become.name])[0]
    # A login as the same user doesn't start it. With a terminal its standard error is in the output.
    if not re.search(rf"(?<![\w/]){re.escape(program)}\b", f"{answer.get('stdout')}\n{answer.get('stderr')}"):
        return ""
    if action._low_level_execute_command(f"command -v {shlex.quote(program)}", sudoable=False).get("rc") == 0:
        return ""
    user = become.get_option("become_user") or "root"
    return (
        f"the host has no {program}, with which Ansible would become {user}: install it, or name another way with"
        " ansible_become_method"
    )


def denied(action: ActionBase, error: AnsibleError) -> str:
    """That the host didn't let Ansible become root, of an error that only says so in Ansible's words; else empty."""
    words = text(str(error))
    if action._connection.become is None or not _DENIED.search(words):
        return ""
    return _denial(action, words.rpartition("Standard Error")[2] or words)


def _denial(action: ActionBase, said: str) -> str:
    user = action._connection.become.get_option("become_user") or "root"
    way_out = f"give the password with -K, or let this user become {user} without one"
    if "not found" in said:
        way_out = "install it, or name another way with ansible_become_method"
    return f"Ansible can't become {user} on the host: {text(said).strip(' .:')}; {way_out}"


def minimum(version: str = __version__) -> Tuple[int, int]:
    """The oldest Python that a host may have with this ansible-core."""
    major, minor = version.split(".")[:2]
    return max(_OLDEST, _OF_CORE.get((int(major), int(minor)), _OF_NEWER_CORES))


def interpreter_words(used: Any) -> List[str]:
    """The interpreter that a module was started with, as the words of a command."""
    line = str(used or "").lstrip("#!")
    try:
        return shlex.split(line) or ["/usr/bin/python3"]
    except ValueError:
        return [line]


def cause(interpreter: str, answer: Mapping[str, Any], oldest: Tuple[int, int]) -> str:
    """Why this Python, which was asked for its version, can't run a module; empty when it can, or didn't say."""
    wanted = "{}.{}".format(*oldest)
    way_out = f"with ansible-core {__version__} nearmetal needs Python {wanted} or newer on the host:"
    name = "install it, or name it with ansible_python_interpreter"
    said = text(next(filter(str.strip, str(answer.get("stderr", "")).splitlines()), ""))
    if answer.get("rc") in _NOT_STARTED and said and not _OF_SHELL.match(said):
        # A shim, such as pyenv's, starts and says itself what is missing.
        return f"{interpreter} on the host doesn't start: {said}; {way_out} {name}"
    if answer.get("rc") in _NOT_STARTED:
        return f"the host has no Python at {interpreter}; {way_out} {name}"
    match = _ANSWER.search(str(answer.get("stdout", "")))
    if match and (int(match[1]), int(match[2])) < oldest:
        return f"{interpreter} on the host is {match[0]}; {way_out} {name}"
    return ""
