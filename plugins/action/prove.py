# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of prove: what a run asks of Ansible. plugin_utils/_prove/run.py has the run."""

from __future__ import annotations

import os
from typing import Any, Mapping

from ansible import constants as C
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ..module_utils._error import NearmetalError
from ..module_utils._words import sentence
from ..plugin_utils._ansible import by_agent, variables
from ..plugin_utils._ansible.delegation import action_on, reboot
from ..plugin_utils._ansible.interpreter import explained
from ..plugin_utils._ansible.plays import report_directory
from ..plugin_utils._ansible.results import with_artifact
from ..plugin_utils._prove import client, reboots
from ..plugin_utils._prove.run import Run

_MODULE = "nearmetal.ec2.prove"
_NO_ANSWER = "the host gave no answer"
_AGENT = by_agent.encoded(measuring=True)


class ActionModule(ActionBase):
    """Runs the loop; each step on the host is one call of the module."""

    _supports_check_mode = True
    _unreachable = False  # whether the last step didn't reach the host

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, with verdict, record and reports."""
        result = variables.warn(super().run(tmp, task_vars), _MODULE, task_vars or {})
        if "step" in self._task.args:
            return {**result, **by_agent.measure(self, "prove", self._task.args, task_vars, _AGENT)}
        try:
            variables.require_limits(task_vars or {}, _MODULE)
            run = Run(self, dict(self._task.args), task_vars or {})
            result = {**result, **(run.preview if self._task.check_mode else run.result)()}
            return with_artifact(result, self._task, str((task_vars or {}).get("inventory_hostname", "")))
        except NearmetalError as error:
            how = "unreachable" if self._unreachable else "failed"
            return {**result, how: True, "msg": variables.as_typed(sentence(str(error)), self._task)}
        finally:
            self.clean_up()

    def step(self, arguments: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """One step on the host; its answer. Raises NearmetalError when the host can't be reached or the step fails."""
        try:
            answered = by_agent.measure(self, "prove", arguments, task_vars, _AGENT)
        except AnsibleError as error:
            self._unreachable = isinstance(error, AnsibleConnectionFailure)
            raise NearmetalError(sentence(str(error))) from None
        self._unreachable = answered.get("unreachable") is True
        answered = explained(self, answered, task_vars)
        answer = answered.get("answer")
        if answered.get("failed") or answered.get("unreachable") or not isinstance(answer, dict):
            raise NearmetalError(sentence(_failure(answered, str(arguments["step"]))))
        return answer

    def on_client(self, name: str, task_vars: dict[str, Any]) -> client.Client:
        """The client host of this name."""
        return client.Client(name, *action_on(self, name, task_vars))

    def clean_up(self) -> None:
        """Remove what Ansible put on the host, if it can still be reached: the result of a run says more than that."""
        try:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        except (AnsibleError, OSError):
            self._connection._shell.tmpdir = None  # Ansible would try it again after the action

    def reboot(self, within: int, task_vars: Mapping[str, Any], written: reboots.Written) -> None:
        """Reboot the host by Ansible's own action. Raises NearmetalError when it isn't back in time."""
        reason = reboot(self, within, task_vars, "nearmetal.ec2.prove compares two states of this host")
        if reason:
            raise NearmetalError(reboots.not_back(within, reason, written))
        self.clean_up()  # what it needed before the reboot; the host may have had it in memory

    def unsafe_file(self) -> str:
        """A file that all hosts of this task share, in the folder that goes with this run of Ansible."""
        task = getattr(self._task, "_uuid", "")
        return os.path.join(C.DEFAULT_LOCAL_TMP, f"nearmetal-unsafe-{task}") if task else ""

    def report_directory(self) -> str:
        """The directory of the run's record and reports."""
        return report_directory()

    def show(self, line: str) -> None:
        """Print a line while the task runs; nothing with `no_log`, because a load may print a secret."""
        if not self.secret:
            self._display.display(line)

    @property
    def secret(self) -> bool:
        """Whether the task has `no_log`."""
        return bool(self._task.no_log)


def _failure(answered: Mapping[str, Any], step: str) -> str:
    """Why a step failed; of a module that broke off, Ansible gives an exception in place of a message."""
    crash = getattr(getattr(answered.get("exception"), "event", None), "msg", "")
    return str(answered.get("msg") or (f"the step {step} broke off on the host: {crash}" if crash else _NO_ANSWER))
