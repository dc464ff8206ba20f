# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of benchmark: the limits of EBS beside a disk's figures, and the baseline of the host."""

from __future__ import annotations

import json
import time
from typing import Any

from ..module_utils._benchmark.tools import registry
from ..module_utils._cloud.types.table import offline_types
from ..module_utils._error import NearmetalError
from ..plugin_utils._ansible import by_agent
from ..plugin_utils._ansible.plays import report_directory
from ..plugin_utils._ansible.state_action import StateAction
from ..plugin_utils._benchmark import ebs_limits, entry, store
from ..plugin_utils._files import short_path

_OF_ONE_HOST = ("write_device", "address")  # options that differ between hosts which are to be compared


_AGENT = by_agent.encoded(measuring=True)


class ActionModule(StateAction):
    """Runs the module, and writes its figures down."""

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the agent answers."""
        return by_agent.measure(self, "benchmark", self._task.args, task_vars, _AGENT)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, with `limits` and `baseline`."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if result.get("failed") or "metrics" not in result or self._task.async_val:
            return result
        platform = result.get("platform")
        kind = platform.get("instance_type") if isinstance(platform, dict) else None
        limits = ebs_limits.sentence(result, offline_types().get(str(kind)))
        if limits:
            result.update(limits=limits, msg=f"{result.get('msg', '')}; {limits}")
        # The figures of a task whose output is secret are written down nowhere.
        if not self._task.no_log:
            # The figures are those of the host on which it ran, as its platform is.
            measured_on = self._task.delegate_to or (task_vars or {}).get("inventory_hostname", "")
            self._write_down(result, str(measured_on))
        return result

    def _write_down(self, result: dict[str, Any], host: str) -> None:
        try:
            name = str(self._task.args["name"])
            options = registry.options_of(name, self._task.args.get("options") or {})
            alike = {name: value for name, value in options.items() if name not in _OF_ONE_HOST}
            text = json.dumps(alike, sort_keys=True)
            written = entry.entry_of_result(host, int(time.time()), name, text, result)
            if written is not None:
                result["baseline"] = short_path(store.append(report_directory(), written))
        except NearmetalError as error:
            self._display.warning(str(error))
