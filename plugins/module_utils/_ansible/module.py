# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is behind the file of a host's module. PRIVATE to the collection.

A task runs its action plugin, which has the agent do the same. So nothing is imported here for Ansible to pack.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, NoReturn

from .edge import HostModule


def main_of(name: str) -> Callable[..., NoReturn]:
    """The main() of a module; it may be given another machine in tests."""

    def main(host: Any = None) -> NoReturn:
        task = import_module(".._tasks.order", __package__)
        work = task.task_of(name)
        module = HostModule(name, work.options)
        host = host or import_module(".._host.host", __package__).WritableHost()
        result = task.carry_out(work.forecast if module.check_mode else work.run, host, module.options)
        if result.get("failed"):
            module.fail_json(**result)
        module.exit_json(**result)

    return main
