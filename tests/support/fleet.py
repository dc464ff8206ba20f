# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of any size without hosts: each host's result is written in the inventory.

The collection under test is used as it is, but for `tune`, `restore`, `prove` and `network_facts`: action plugins of a
few lines that give back the host's variables `module_result` and `allowances`, or end as `fate` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional

ROOT = Path(__file__).resolve().parents[2]

TUNE = """
import signal

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        fate = task_vars.get("fate", "")
        if fate == "unreachable":
            raise AnsibleConnectionFailure("Failed to connect to the host via ssh: Connection timed out")
        if fate == "dies":
            raise AnsibleActionFail("the host went away in the middle of the module")
        if fate == "waits":
            with open(task_vars["gate"], "w") as gate:
                gate.write("reached")
            signal.pause()
        result.update(task_vars["module_result"])
        if fate == "fails":
            result["failed"] = True
        return result
"""

# What a host on EC2 would report of its ENA interface.
NETWORK_FACTS = """
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        counters = {name: task_vars.get(name, {}) for name in ("allowances", "packets")}
        sample = {"seconds": self._task.args["sample_seconds"], **counters}
        return {**super().run(tmp, task_vars), "ansible_facts": {"nearmetal": {"network": {"sample": sample}}}}
"""

STAND_INS = {"tune": TUNE, "restore": TUNE, "prove": TUNE, "network_facts": NETWORK_FACTS}


def finding(concern: str, status: str, knob: str = "source", **more: Any) -> Dict[str, Any]:
    """A finding of the result contract."""
    plain = {"concern": concern, "knob": knob, "where": "", "status": status, "now": None, "wanted": None}
    return {**plain, "reason": f"{concern} is {status}", "reference": "", "gain": "", **more}


def result_with(*findings: Mapping[str, Any], **more: Any) -> Dict[str, Any]:
    """A result of a state module."""
    changed = any(finding["status"] in ("would_change", "changed") for finding in findings)
    return {
        "changed": changed,
        "msg": "as reported",
        "diff": {"before": {}, "after": {}},
        "actions": [],
        "findings": list(findings),
        "reboot_required": False,
        "reboot_reasons": [],
        "platform": {
            "host_class": "xen_hvm",
            "instance_type": "m4.large",
            "architecture": "x86_64",
            "kernel": "6.1.0",
            "distribution": "debian",
        },
        "errors": {},
        "workload": "base",
        **more,
    }


SLOW_CLOCK = finding(
    "clocksource",
    "would_change",
    now="xen",
    wanted="tsc",
    reason="tsc is read in user space by the vDSO, without a system call",
    reference="AWS, 2017",
    gain="AWS, 2017: one program took 12.00 s on xen, 2.00 s on tsc",
)
GOOD_CLOCK = finding("clocksource", "ok", now="tsc", wanted="tsc", reason="tsc is in use")


class Fleet:
    """Hosts that are only variables, and `ansible-playbook` over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports = folder / "reports"
        self._collection()

    def _collection(self) -> None:
        home = self.folder / "collections/ansible_collections/nearmetal/ec2"
        (home / "plugins/action").mkdir(parents=True)
        for name in ("galaxy.yml", "roles", "playbooks"):
            (home / name).symlink_to(ROOT / name)
        routes = (ROOT / "meta/runtime.yml").read_text().splitlines(keepends=True)
        (home / "meta").mkdir()
        (home / "meta/runtime.yml").write_text(
            "".join(line for line in routes if line.strip().partition(":")[0] not in STAND_INS)
        )
        for path in (ROOT / "plugins").iterdir():
            if path.name not in ("action", "__pycache__"):
                (home / "plugins" / path.name).symlink_to(path)
        for path in (ROOT / "plugins/action").glob("*.py"):
            if path.stem not in STAND_INS:
                (home / "plugins/action" / path.name).symlink_to(path)
        for name, code in STAND_INS.items():
            (home / "plugins/action" / f"{name}.py").write_text(code)
        (self.folder / "ansible.cfg").write_text("[defaults]\n")

    def inventory(
        self, hosts: Mapping[str, Mapping[str, Any]], groups: Optional[Mapping[str, Iterable[str]]] = None
    ) -> Path:
        """Write the inventory; a host's variables are `module_result` or `fate`."""
        plain: Dict[str, Any] = {
            "all": {
                "hosts": {
                    name: {"ansible_connection": "ssh" if "ansible_host" in own else "local", **own}
                    for name, own in hosts.items()
                },
                "children": {},
            }
        }
        for group, names in (groups or {}).items():
            plain["all"]["children"][group] = {"hosts": {name: {} for name in names}}
        path = self.folder / "hosts.json"
        path.write_text(json.dumps(plain))
        return path

    def environment(self, callback: str = "nearmetal.ec2.fleet", **more: str) -> Dict[str, str]:
        """The environment of a run: none of the caller's settings, but this callback."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NEARMETAL_"))}
        return {
            **clean,
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections"),
            "ANSIBLE_STDOUT_CALLBACK": callback,
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_BECOME_ASK_PASS": "False",
            "NEARMETAL_REPORT_DIRECTORY": str(self.reports),
            "COLUMNS": "80",
            **more,
        }

    def command(self, *arguments: str, playbook: str = "nearmetal.ec2.audit") -> List[str]:
        """The command line."""
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        return [program, "-i", str(self.folder / "hosts.json"), playbook, *arguments]

    def run(
        self, *arguments: str, playbook: str = "nearmetal.ec2.audit", callback: str = "nearmetal.ec2.fleet", **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a playbook over the fleet; its output as text."""
        return subprocess.run(
            self.command(*arguments, playbook=playbook),
            cwd=self.folder,
            env=self.environment(callback, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def report(self) -> Dict[str, Any]:
        """The report.json that the run wrote."""
        plain: Dict[str, Any] = json.loads((self.reports / "report.json").read_text())
        return plain
