# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts of the inventory under the same load, in random order. Runs on the controller, and a load on each host."""

from __future__ import annotations

import os
import time
from typing import Any

from ..module_utils._error import NearmetalError
from ..module_utils._planning.options import validate
from ..module_utils._prove.host.proving import HOST
from ..module_utils._prove.host.proving import OPTIONS as OF_PROVE
from ..module_utils._prove.statistics.record import Measurement, Start
from ..module_utils._prove.statistics.settings import longest_load
from ..module_utils._version import VERSION
from ..module_utils._words import sentence
from ..plugin_utils._ansible.delegation import action_on
from ..plugin_utils._files import file_name, make_folder
from ..plugin_utils._prove import client, inputs, log, loop, sentences, two_hosts
from .prove import ActionModule as ProveAction

_SHARED = ("command", "benchmark", "benchmark_options", "timed", "tolerate", "seconds", "pairs", "margin", "primary")
OPTIONS = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    **{name: OF_PROVE[name] for name in (*_SHARED, "wait", "seed")},
}
_AGAINST = " against "
_AS_THEY_ARE = {"load_on": [HOST], "health": "", "restart": "", "programs": [], "reboot": False, "profile": False}


class ActionModule(ProveAction):
    """Runs the loop of prove; each measurement is one call of the module on one of the hosts."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        try:
            options = self._options(task_vars or {})
            return {
                "changed": False,
                **(self._preview if self._task.check_mode else self._compared)(options, task_vars or {}),
            }
        except NearmetalError as error:
            return {"failed": True, "msg": sentence(str(error))}

    def _options(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """The options, with the load as `command` and the settings. Raises NearmetalError."""
        options = {**validate("compare", OPTIONS, dict(self._task.args)), **_AS_THEY_ARE}
        names = options["hosts"]
        if len(set(names)) != 2 or len(names) != 2 or not set(names) <= set(task_vars["hostvars"]):
            raise NearmetalError("compare.hosts must be two hosts of the inventory, the one to compare with first")
        settings = inputs.settings({**options, "soak": 0, "settle": 0.0, "abandon_after": 0})
        options.update(command=inputs.load_of(options, settings.seconds), settings=settings)
        inputs.require_runnable(options)
        return options

    def on_client(self, name: str, task_vars: dict[str, Any]) -> client.Client:
        """A host that is compared; the load runs as root if the task has become."""
        return client.Client(name, *action_on(self, name, task_vars, bool(self._task.become)))

    def _preview(self, options: dict[str, Any], _task_vars: dict[str, Any]) -> dict[str, Any]:
        first, second = options["hosts"]
        return {"msg": f"{second} would be compared with {first}, in at most {options['settings'].pairs} pairs"}

    def _compared(self, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        names, settings, load = options["hosts"], options["settings"], options["command"]
        arguments = {"command": load, "seconds": settings.seconds, "programs": options["tolerate"]}
        hosts = [self.on_client(name, task_vars) for name in names]
        name = _AGAINST.join(reversed(names))
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = os.path.join(self.report_directory(), "compare", f"{file_name(name)}-{stamp}-{settings.seed}.jsonl")
        make_folder(path)
        start = Start(settings, name, time.time(), load, HOST, VERSION, tolerate=tuple(options["tolerate"]))
        record = log.begin(path, start)
        control = two_hosts.TwoHosts(hosts, arguments, settings.wait, self.show)
        try:
            result = loop.run_to_verdict(record, control, self._progress, longest_load(settings.seconds))
        finally:
            for host in hosts:
                host.leave()
        line = two_hosts.sentence(*names, result, settings.margin)
        return {"msg": line, "verdict": result.as_dict(), "load": load, "record": path}

    def _progress(self, record: log.Log, _measurement: Measurement) -> None:
        second, first = record.record.start.host.split(_AGAINST)
        self.show(two_hosts.with_names(sentences.progress(record.record, ""), first, second))
