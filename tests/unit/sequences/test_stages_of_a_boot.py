# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot brings late changes nothing: at each of its stages the unit sets only what tune has set or found.

A twin of each host is tuned in the same way and never booted: its values are those that tune left.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Set, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, Run, plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import place_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Value

from tests.support import hosts
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import ROUTE, probe_only
from tests.support.sequences.wanted import drawn_options

SEEDS = range(40)
HOSTS = ("nitro_big", "metal", "xen_hvm", "nitro")
_NET = "/sys/class/net"
_SERVICE = "/sys/fs/cgroup/system.slice/{}.service/cgroup.procs"
_TUNED = """\
[cpu]
governor=powersave
[vm]
transparent_hugepages=always
[sysctl]
vm.swappiness=33
net.core.somaxconn=777
"""
# What is on the disk, so that it is there at each stage.
_DISK = {
    "/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
    "/etc/tuned/active_profile": "site\n",
    "/etc/tuned/site/tuned.conf": _TUNED,
    "/etc/systemd/network/20-second.network": "[Match]\nName={second}\n\n[Link]\nMTUBytes=1400\n",
    "/usr/lib/systemd/system/irqbalance.service": "[Service]\nExecStart=/usr/sbin/irqbalance --foreground\n",
    "/usr/sbin/irqbalance": "\x7fELF",
}
# Options that a random draw seldom has, and that what comes late decides.
_WANTED: Mapping[str, Mapping[str, Any]] = {
    "network_stack": {"mtu": 9001, "rx_ring": "max", "busy_poll": 50, "somaxconn": 4096},
    "network_irq": {"policy": "spread", "queues": "2", "rps": "auto"},
    "network_routes": {"own_routes": "enabled"},
    "hugepages": {"pages": [{"size": "2M", "percent_of_memory": 20}], "thp": "never"},
    "memory": {"overcommit": "never", "swappiness": 1},
    "cpu_power": {"governor": "performance"},
    "block_storage": {"scheduler": "none", "disks": [{"mount": "/data", "read_ahead_kb": 4096}]},
}


class Machine:
    """A host of tests/hosts with a second NIC, of which parts can be missing."""

    def __init__(self, name: str) -> None:
        spec = json.loads((hosts.FOLDER / f"{name}.json").read_text())
        first = spec["nics"][0]
        place = first["place"][:-3] + "9.0" if ":" in first["place"] else "vif-9"
        if len(spec["nics"]) < 2:
            spec["nics"].append({**first, "name": "ens9", "place": place})
        self.names = self.first, self.second = tuple(nic["name"] for nic in spec["nics"][:2])
        self.files = {path: text for path, text in hosts.built(spec).items() if path != "/proc/net/route"}
        self.files.update({path: text.replace("{second}", self.second) for path, text in _DISK.items()})
        memory = self.files["/proc/meminfo"]
        self._memory = dict(line.split(":") for line in memory.splitlines())
        self.mounts = self.files.get("/proc/self/mountinfo", "")

    def parts(self) -> List[str]:
        """All that comes late."""
        return [*self._files_of(), "route 1", "route 2", "addresses", "vpn", "rule", "programs", "stolen", "mounts"]

    def _files_of(self) -> Dict[str, Dict[str, str]]:
        bond, vlan = f"{_NET}/bond0", f"{_NET}/{self.first}.10"
        return {
            "tuned": {_SERVICE.format("tuned"): "501\n"},
            "kubelet": {_SERVICE.format("kubelet"): "502\n"},
            "networkd": {_SERVICE.format("systemd-networkd"): "503\n"},
            "irqbalance": {
                _SERVICE.format("irqbalance"): "504\n",
                "/proc/504/cmdline": "/usr/sbin/irqbalance\0--foreground\0",
            },
            "run": {"/run/systemd/network/10-first.network": f"[Match]\nName={self.first}\n\n[Link]\nMTUBytes=1300\n"},
            "bond": {f"{bond}/type": "1\n", f"{bond}/mtu": "1500\n", f"{bond}/lower_{self.second}/mtu": "1500\n"},
            "vlan": {f"{vlan}/type": "1\n", f"{vlan}/mtu": "1500\n", f"{vlan}/lower_{self.first}/mtu": "1500\n"},
        }

    def with_parts(self, parts: Iterable[str]) -> Dict[str, str]:
        """The files with these parts of what comes late."""
        files, names = dict(self.files), self.names
        for part, more in self._files_of().items():
            files.update(more if part in parts else {})
        routes = [name for number, name in enumerate(names, 1) if f"route {number}" in parts]
        files["/proc/net/route"] = "Iface\n" + "".join(map(ROUTE.format, routes))
        lines = [f"route main default via 10.0.0.1 dev {name} metric {100 + names.index(name)}" for name in routes]
        if "addresses" in parts:
            lines += [f"address {name} 10.0.0.{number}/24" for number, name in enumerate(names, 5)]
        lines += ["route main 10.8.0.0/24 dev wg0"] if "vpn" in parts else []
        lines += ["rule 900 from 10.0.0.6 lookup 200"] if "rule" in parts else []
        lines += [f"route 200 default via 10.0.0.1 dev {self.second}"] if "rule" in parts else []
        files["/rtnetlink"] = "".join(f"{line}\n" for line in lines)
        if "programs" in parts:  # they have nearly all of the memory
            taken = {"MemAvailable": 900_000, "Committed_AS": int(self._memory["CommitLimit"].split()[0]) - 1000}
            memory = {**self._memory, **{name: f" {number} kB" for name, number in taken.items()}}
            files["/proc/meminfo"] = "".join(f"{name}:{text}\n" for name, text in memory.items())
        if "stolen" in parts:
            files["/proc/stat"] = files["/proc/stat"].replace(
                "cpu  100 0 100 9000 0 10 10 0", "cpu  100 0 100 9000 0 10 10 900"
            )
        if "mounts" in parts and "/sys/block/nvme1n1/dev" in files:
            device = files["/sys/block/nvme1n1/dev"].strip()
            files["/proc/self/mountinfo"] = self.mounts + f"99 1 {device} / /data rw - ext4 /dev/nvme1n1 rw\n"
        return files


def drawn(rng: random.Random, machine: Machine) -> Dict[str, Dict[str, Any]]:
    """The wanted options of some concerns."""
    names = rng.sample(sorted(_WANTED), rng.randint(1, len(_WANTED)))
    wanted = {name: dict(_WANTED[name]) for name in names}
    for concern in rng.sample(sorted(CONCERNS), 2):
        options = drawn_options(rng, CONCERNS[concern].options, few=0.2)
        wanted[concern] = {**options, **wanted.get(concern, {})}
    for name in wanted:
        wanted[name].pop("persist", None)
    for name in ("network_stack", "network_irq"):
        if name in wanted:
            wanted[name].update(allow_disruptive=rng.random() < 0.2)
            wanted[name].pop("interfaces", None)
    if "network_stack" in wanted and rng.random() < 0.4:
        wanted["network_stack"]["interfaces"] = [{"name": rng.choice(["bond0", machine.second]), "mtu": 1450}]
    return wanted


def tuned(folder: Path, machine: Machine, files: Dict[str, str], wanted: Mapping[str, Any]) -> Tuple[FakeKernel, Run]:
    """A host that tune has tuned."""
    host = FakeKernel(folder, files)
    probe_only(host, list(machine.names))
    return host, run(host, lambda known: tune_requests((), wanted, {}, on_host=known), conditions=Conditions())


def actions_of(done: Run) -> List[Action]:
    """The changes of the concerns."""
    return [action for outcome in done.outcomes if outcome.name in CONCERNS for action in outcome.plan.actions]


def refused(done: Run) -> Set[Tuple[str, str, str]]:
    """What is refused: concern, knob and place."""
    findings = [finding for outcome in done.outcomes for finding in outcome.plan.findings]
    return {(finding.concern, finding.knob, finding.where) for finding in findings if finding.status == "refused"}


def _left(twin: FakeKernel, action: Action) -> Value:
    return place_of(twin, action.key).read()


def beyond(actions: Iterable[Action], twin: FakeKernel) -> List[str]:
    """The changes to another value than tune has left."""
    found = []
    for action in actions:
        left = _left(twin, action)
        values = action.after if isinstance(action.after, dict) else {"": action.after}
        allowed = left if isinstance(left, dict) else {"": left}
        if any(values[key] != allowed.get(key, values[key]) for key in values):
            found.append(
                f"{action.concern}.{action.knob} {action.where}: {action.before} to {action.after}, not {left}"
            )
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_unit_sets_only_what_tune_has_left(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    machine = Machine(rng.choice(HOSTS))
    complete = [part for part in machine.parts() if rng.random() < 0.6]
    files, wanted = machine.with_parts(complete), drawn(rng, machine)
    try:
        twin, done = tuned(tmp_path / "twin", machine, files, wanted)
    except NearmetalError:
        return  # not what this test is about
    host, _done = tuned(tmp_path / "host", machine, files, wanted)

    order = rng.sample(complete, len(complete))
    sizes = sorted({0, len(order), *(rng.randint(0, len(order)) for _stage in range(3))})
    host.reboot("22222222-2222-3333-4444-555555555555", machine.with_parts(()))
    (tmp_path / "host/rtnetlink").write_text("")
    probe_only(host, list(machine.names))
    for size in sizes:
        host.replug(machine.with_parts(order[:size]))
        planned = plan_run(host, stored_requests, conditions=OF_UNIT)
        assert not beyond(actions_of(planned), twin), f"with {order[:size]} of {order}, {wanted}"
        run(host, stored_requests, conditions=OF_UNIT)
    assert refused(plan_run(host, stored_requests, conditions=OF_UNIT)) == refused(done)
    # The fake kernel takes no routes.
    changed = [action for action in actions_of(done) if action.scope == "runtime" and action.what != "routes.paths"]
    lost = [action for action in changed if place_of(host, action.key).read() != _left(twin, action)]
    assert not lost, f"after the boot: {lost}"
