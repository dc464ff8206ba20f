# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of profile: the page and the folded stacks of a host."""

from __future__ import annotations

import os
import time
from typing import Any

from ..module_utils._error import NearmetalError
from ..module_utils._profile.folding import Tree
from ..plugin_utils._ansible import by_agent
from ..plugin_utils._ansible.by_agent import StateAction
from ..plugin_utils._ansible.plays import report_directory
from ..plugin_utils._files import file_name, make_folder, short_path, write, writing
from ..plugin_utils._profile import document, page, stacks

_AGENT = by_agent.encoded(measuring=True)


class ActionModule(StateAction):
    """Runs the module, and draws what it found."""

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the agent answers."""
        return by_agent.measure(self, "profile", self._task.args, task_vars, _AGENT)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, with `page` and `folded` in place of the stacks."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if result.get("failed") or "counters" not in result:
            return result
        host = str(self._task.delegate_to or (task_vars or {}).get("inventory_hostname", ""))
        try:
            tree = stacks.unpacked(result.pop("stacks")) if "stacks" in result else None
            if not self._task.no_log:
                result.update(_written(host, tree, result))
        except NearmetalError as error:
            self._display.warning(str(error))
        return result


def _written(host: str, tree: Tree | None, result: dict[str, Any]) -> dict[str, str]:
    now = time.time()
    base = os.path.join(
        report_directory(), document.FOLDER, file_name(host) + time.strftime("-%Y%m%dT%H%M%SZ", time.gmtime(now))
    )
    with writing(f"the profile {base}.json"):
        make_folder(base)
        paths = {"document": write(f"{base}.json", document.content(host, result, now))}
        if tree is not None:
            paths["folded"] = write(f"{base}.folded", "".join(f"{line}\n" for line in tree.lines()))
            paths["page"] = write(f"{base}.html", page.render(host, {"profile": [tree]}, result, now))
    return {name: short_path(path) for name, path in paths.items()}
