# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that only look: facts, and a capture. PRIVATE to the collection.

Each imports what it needs, because Python compiles what Ansible sends in each run.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from .._error import NearmetalError
from .._facts.host import Host
from .._facts.json_data import json_data
from .._host.host import WritableHost
from .._planning.options import Spec
from .task import Task, Work


def _host_facts(host: Host, _options: object) -> Dict[str, Any]:
    from .._facts import clock, cpu, platform

    return _facts(
        platform=json_data(platform.observe(host)),
        clock=clock.observe(host).as_dict(),
        cpu=json_data(cpu.observe(host)),
    )


def _instance_facts(host: Host, _options: object) -> Dict[str, Any]:
    from .._facts import drivers, ebs, imds, platform

    instance = imds.observe(platform.observe(host), host.metadata_service or imds.ENDPOINT)
    return _facts(
        instance=json_data(instance), drivers=json_data(drivers.observe(host)), ebs=ebs.observe(host).as_dict()
    )


def _network_facts(host: Host, options: Mapping[str, Any]) -> Dict[str, Any]:
    from .._facts import drivers, network, network_sample

    facts = network.observe(host)
    counters = network_sample.observe(host, options["sample_seconds"])
    return _facts(network={**facts.as_dict(), "llq": drivers.llq(host, facts.nics), "sample": counters})


def _topology_facts(host: Host, _options: object) -> Dict[str, Any]:
    from .._facts import topology

    return _facts(topology=topology.observe(host).as_dict())


def _capture(host: WritableHost, _options: object) -> Dict[str, Any]:
    from .._agent.capture import capture

    if not host.is_root():
        raise NearmetalError(
            "the kernel log and what is wanted are readable by root alone: set become: true, become_user: root"
        )
    captured = capture(host)
    return {"changed": False, "capture": captured, "msg": f"{len(captured['files'])} files of this host"}


def _facts(**facts: Any) -> Dict[str, Any]:
    return {"changed": False, "ansible_facts": {"nearmetal": facts}}


def _look(work: Work, **options: Any) -> Task:
    spec: Spec = options
    return Task(spec, work, work)


TASKS = {
    "capture": _look(_capture),
    "host_facts": _look(_host_facts),
    "instance_facts": _look(_instance_facts),
    "network_facts": _look(_network_facts, sample_seconds={"type": "int", "default": 0, "range": (0, 60)}),
    "topology_facts": _look(_topology_facts),
}
