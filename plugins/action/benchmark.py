# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of benchmark: the limits of EBS beside a disk's figures, and the baseline of the host."""

from __future__ import annotations

import json
import time
from typing import Any

from ..module_utils._benchmark.host.benchmarking import OPTIONS
from ..module_utils._benchmark.tools import registry
from ..module_utils._benchmark.tools.pair import CLIENT
from ..module_utils._cloud.types.table import offline_types
from ..module_utils._error import NearmetalError
from ..module_utils._planning.options import validate
from ..module_utils._words import sentence
from ..plugin_utils._ansible import by_agent
from ..plugin_utils._ansible.by_agent import StateAction
from ..plugin_utils._ansible.delegation import action_on
from ..plugin_utils._ansible.interpreter import explained
from ..plugin_utils._ansible.plays import report_directory
from ..plugin_utils._benchmark import ebs_limits, several, store
from ..plugin_utils._clean import mapping
from ..plugin_utils._files import short_path
from ..plugin_utils._together import together

_LEAD = 8.0  # seconds after which each of several clients has what it is to do
_OF_ONE_HOST = ("write_device", "address")  # options that differ between hosts which are to be compared


_AGENT = by_agent.encoded(measuring=True)


class ActionModule(StateAction):
    """Runs the module, and writes its figures down."""

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the agent answers, or those of all clients of `load_on` together."""
        names = validate("benchmark", OPTIONS, self._task.args)["load_on"]
        if not names:
            return by_agent.measure(self, "benchmark", self._task.args, task_vars, _AGENT)
        try:
            return self._on_clients(names, task_vars or {})
        except NearmetalError as error:
            return {"failed": True, "msg": sentence(str(error))}

    def _on_clients(self, names: list[str], task_vars: dict[str, Any]) -> dict[str, Any]:
        """The result of one load that several clients make."""
        name, given = str(self._task.args.get("name")), dict(self._task.args.get("options") or {})
        if name not in registry.BENCHMARKS or given.get("part") != CLIENT:
            raise NearmetalError("benchmark.load_on names the clients of a load: set options to part: client")
        wrong = [client for client in names if client not in task_vars["hostvars"] or names.count(client) > 1]
        if wrong:
            raise NearmetalError(f"benchmark.load_on has {wrong[0]}; it must name hosts of the inventory, each once")
        options, load = registry.options_of(name, given), {"start_at": time.time() + (_LEAD if len(names) > 1 else 0)}
        calls = []
        for number, client in enumerate(names):
            other, its_vars = action_on(self, client, task_vars, bool(self._task.become))
            wanted = {**load, "name": name, "options": registry.options_of_client(name, options, number)}
            calls.append(lambda other=other, wanted=wanted, its_vars=its_vars: other.measure_once(wanted, its_vars))
        return several.merged(name, names, together(calls, several.failed))

    def measure_once(self, wanted: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """What one client answers; nothing of Ansible is left there."""
        try:
            return explained(self, by_agent.measure(self, "benchmark", wanted, task_vars, _AGENT), task_vars)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, with `limits` and `baseline`."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if result.get("failed") or "metrics" not in result or self._task.async_val:
            return result
        kind = mapping(result.get("platform")).get("instance_type")
        limits = ebs_limits.sentence(result, offline_types().get(str(kind)))
        if limits:
            result.update(limits=limits, msg=f"{result.get('msg', '')}; {limits}")
        # The figures of a task whose output is secret are written down nowhere.
        clients = result.get("clients", {})
        if not self._task.no_log and len(clients) < 2:
            # The figures are those of the host on which it ran, as its platform is; of several they are nobody's.
            measured_on = [*clients, self._task.delegate_to or (task_vars or {}).get("inventory_hostname", "")][0]
            self._write_down(result, str(measured_on))
        return result

    def _write_down(self, result: dict[str, Any], host: str) -> None:
        try:
            name = str(self._task.args["name"])
            options = registry.options_of(name, self._task.args.get("options") or {})
            alike = {name: value for name, value in options.items() if name not in _OF_ONE_HOST}
            text = json.dumps(alike, sort_keys=True)
            written = store.entry_of_result(host, int(time.time()), name, text, result)
            if written is not None:
                result["baseline"] = short_path(store.append(report_directory(), written))
        except NearmetalError as error:
            self._display.warning(str(error))
