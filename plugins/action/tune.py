# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of tune."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from typing import Any

from ansible import constants as C
from ansible.module_utils.common.validation import check_type_list
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._error import NearmetalError
from ..module_utils._requests.combined import require_known
from ..module_utils._words import shown
from ..plugin_utils._ansible import by_agent
from ..plugin_utils._ansible.by_agent import HostAction
from ..plugin_utils._ansible.plays import CALLBACK, require_report_directory

# What only a report reads: 60 KiB of each host, which Ansible would keep until the last one is tuned.
_FOR_A_REPORT = ("actions", "findings", "platform", "queue_map", "topology")
# The folders of root, too: become may have given the health command its path.
_LOOK = 'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; command -v "$0"'
_AT_ONCE = re.compile(r"\s*(\d+|(100|\d?\d)%)\s*", re.ASCII)


class ActionModule(HostAction):
    """Confirms a network change over a new connection."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result; in a rollout without what a report would read, if none is made."""
        result = super().run(tmp, task_vars)
        if not (task_vars or {}).get("_tune_brief") or C.DEFAULT_STDOUT_CALLBACK == CALLBACK:
            return result
        return {name: value for name, value in result.items() if name not in _FOR_A_REPORT}

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """The module's result; of a wrong workload a sentence, before the host is asked."""
        try:
            names = check_type_list(self._task.args.get("workload") or ["base"])
            if "auto" not in names:
                require_known(names)
            at_once = self._given(task_vars or {}, "tune_reboot_at_once")
            if at_once is not None and not _AT_ONCE.fullmatch(str(at_once)):
                raise NearmetalError(
                    f"tune_reboot_at_once must be a number of hosts or 0% to 100%, not {shown(at_once)}"
                )
        except NearmetalError as error:
            return {"failed": True, "changed": False, "msg": str(error), "workload": names, "mistake": True}
        except TypeError:
            pass  # the module says what it takes
        result = (self._planned if self._task.check_mode else self._done)(task_vars)
        sentences = [] if result.get("failed") else [*self._contrary(task_vars or {}), *self._idle(task_vars or {})]
        return {**result, "warnings": [*(result.get("warnings") or ()), *sentences]} if sentences else result

    def _given(self, variables: Any, name: str) -> Any:
        """The value of a variable, which may be a template."""
        return self._templar.template(variables[name]) if name in variables else None

    def _contrary(self, task_vars: dict[str, Any]) -> Iterator[str]:
        """A sentence where a playbook spells out another workload than the host's own variables name."""
        spelled = self._task.args.get("workload_concerns_of")
        own = self._given(task_vars["hostvars"][task_vars["inventory_hostname"]], "tune_workload") if spelled else None
        if own is not None and check_type_list(own) != [spelled]:
            yield (
                f"tune_workload: {', '.join(map(str, check_type_list(own)))} of the inventory has no effect in this"
                f" playbook, which tunes for {spelled}: run nearmetal.ec2.tune for it"
            )

    def _idle(self, task_vars: dict[str, Any]) -> Iterator[str]:
        """A sentence where an image is made, for what would follow a change of a host."""
        reboot, health = (self._given(task_vars, name) or False for name in ("tune_reboot", "tune_health_command"))
        asked = {"tune_reboot": boolean(reboot, strict=False), "tune_health_command": bool(health)}
        idle = [name for name in asked if asked[name]]
        if idle and boolean(self._task.args.get("bake") or False, strict=False):
            verb = "have" if idle[1:] else "has"
            yield f"with tune_bake {' and '.join(idle)} {verb} no effect: the first boot of the image tunes its host"

    def _planned(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return self.do_task(task_vars, drawn=True)

    def _require_health_program(self, task_vars: dict[str, Any]) -> None:
        """Raise NearmetalError where the role's health command can't pass, before anything is changed."""
        command = str(self._given(task_vars, "tune_health_command") or "")
        try:
            program, *_arguments = shlex.split(command) or [""]
        except ValueError as error:
            why = str(error).lower()
            raise NearmetalError(f"tune_health_command: {why} in {command}; nothing was changed") from None
        if not program or boolean(self._task.args.get("bake") or False, strict=False):
            return
        where = "controller" if self._given(task_vars, "tune_health_on") == "controller" else "host"
        if where == "controller":
            missing = shutil.which(program) is None
        else:
            look = f"{self._compute_environment_string()} {shlex.join(['sh', '-c', _LOOK, program])}"
            missing = self._low_level_execute_command(look, sudoable=False)["rc"] != 0
        if missing:
            raise NearmetalError(f"tune_health_command: the {where} has no program {program}; nothing was changed")

    def _done(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        self._require_health_program(task_vars or {})
        reported = C.DEFAULT_STDOUT_CALLBACK == CALLBACK
        if reported:
            require_report_directory()
        # The agent observes disks for a picture of the host only if there may be a report.
        result = self.do_task(task_vars, drawn=reported)
        if "confirm_within" in result:
            result.update(self._confirmed(task_vars))
        return result

    def _confirmed(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What to add to the result when a new connection has shown that the host can still be reached.

        This isn't a task of its own, because another host's failure may end the play before that task.
        """
        self._connection.reset()
        confirmed = by_agent.do(self, "confirm", {}, task_vars)
        if confirmed.get("changed"):
            return {}
        why = confirmed.get("msg", "") if confirmed.get("failed") else "too late: the host has taken the change back"
        return {"failed": True, "msg": f"the network change could not be confirmed: {why}"}
