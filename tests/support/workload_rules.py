# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/workload_status.csv from the rules of workload_rules.toml, without the planner.

Run it to write the table again: python -m tests.support.workload_rules
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import tomllib

from tests.support.kernel.disks import STORE

FOLDER = Path(__file__).resolve().parent
RULES: Dict[str, Any] = tomllib.loads((FOLDER / "workload_rules.toml").read_text("utf-8"))
TABLE = FOLDER.parents[1] / "docs" / "workload_status.csv"
NAMED = sorted(set(RULES["workloads"]) - {"base", "named"})


class RulesError(Exception):
    """What is missing in workload_rules.toml."""


def description(name: str) -> Dict[str, Any]:
    """A host of the table as tests/hosts describes hosts."""
    host = RULES["hosts"][name]
    entry: Dict[str, Any] = json.loads((FOLDER.parent / "hosts" / f"{host['file']}.json").read_text("utf-8"))
    entry["shape"] = host.get("shape", entry["shape"])
    entry["nics"] = [{**nic, **host.get("nic", {})} for nic in entry.get("nics", ())[: host.get("nics")]]
    entry["files"].update({path: f"{text}\n" for path, text in host.get("files", {}).items()})
    if "type" in host and host["class"] != "xen_hvm":
        entry["files"]["/sys/devices/virtual/dmi/id/product_name"] = f"{host['type']}\n"
    return entry


def values(workload: str) -> Dict[str, Any]:
    """Knob → what the workload wants of it."""
    inherited = {**RULES["workloads"]["base"], **(RULES["workloads"]["named"] if workload != "base" else {})}
    chosen = {**inherited, **RULES["workloads"][workload]}
    unruled = sorted(set(chosen) - set(RULES["knobs"]))
    if unruled:
        raise RulesError(f"workload_rules.toml: {workload} wants {unruled[0]}, which has no [knobs] table")
    return {knob: chosen[knob] for knob in RULES["knobs"] if knob in chosen}


def statuses(workload: str, knob: str, name: str) -> str:
    """The cell of the table: the statuses of the NICs or disks of the host, joined by a plus."""
    goal = values(workload)[knob]
    rules = RULES["knobs"][knob]
    words = {_status(knob, {**view, "goal": goal}) for view in _views(rules.get("each", ""), workload, name)}
    # A disk that the rule doesn't mean has no status if another disk has one.
    return "+".join(sorted(words - {"not_applicable"} or words))


def check(knob: str, name: str) -> str:
    """The cell of a check."""
    return str(next(rule["status"] for rule in RULES["checks"][knob]["rules"] if _holds(rule, _host(name))))


def _status(knob: str, view: Dict[str, Any]) -> str:
    concern = knob.split(".")[0]
    rules = RULES["knobs"][knob]
    like = RULES["knobs"].get(rules.get("like", ""), {})
    view = {**view, "met": _met(knob, view)}
    for group in (RULES["knobs"]["*"], RULES["knobs"].get(f"{concern}.*", {}), like, rules):
        for rule in group.get("rules", ()):
            if _holds(rule, view):
                return str(rule["status"])
    if knob not in view["has"]:
        raise RulesError(f"workload_rules.toml: no rule decides {knob}, and it has no value in [fresh] or [drivers]")
    return "ok" if view["met"] else "would_change"


def _holds(rule: Dict[str, Any], view: Dict[str, Any]) -> bool:
    exact = {key: allowed for key, allowed in rule.items() if isinstance(allowed, list)}
    return (
        all(view.get(key) in allowed for key, allowed in exact.items())
        and all(view[key] <= bound for key, bound in rule.get("most", {}).items())
        and all(view[key] < bound for key, bound in rule.get("below", {}).items())
    )


def _met(knob: str, view: Dict[str, Any]) -> bool:
    goal, now = view["goal"], view["has"].get(knob)
    compare = RULES["knobs"][knob].get("compare", "equal")
    if now is None:
        return False
    if compare == "at least":
        return bool(now >= goal)
    if compare == "at most":
        return bool(now <= goal)
    if compare == "as wide":
        return bool(now[0] <= goal[0] and now[1] >= goal[1])
    return bool(now == goal)


def _host(name: str) -> Dict[str, Any]:
    """The properties that conditions ask for."""
    host, described = RULES["hosts"][name], description(name)
    shape = described["shape"]
    cores = shape["sockets"] * shape["cores"]
    return {
        "class": host["class"],
        "arch": host.get("arch", "x86_64"),
        "burstable": host.get("burstable", False),
        "supported": host.get("supported", True),
        "distribution": described["files"]["/etc/os-release"].split()[0].partition("=")[2],
        "cores": cores,
        "threads": shape["threads"],
        "cpus": cores * shape["threads"],
        "nodes": shape["nodes"],
        "idle": "idle" in described,
        "frequency": "frequency" in described,
        "driver": described["nics"][0]["driver"] if described["nics"] else "",
        "has": {**RULES["fresh"], **host.get("has", {})},
    }


def _views(each: str, workload: str, name: str) -> Iterator[Dict[str, Any]]:
    """The host, or the host with each of its NICs or disks, on the CPUs that the workload leaves."""
    host = _host(name)
    described = description(name)
    if "smt.threads" in values(workload) and _status("smt.threads", {**host, "goal": "disabled"}) == "would_change":
        host = {**host, "cpus": host["cores"]}
    if host["class"] in ("not_ec2", "container"):
        yield host
    elif each == "nic":
        for position, nic in enumerate(described["nics"]):
            driver = RULES["drivers"].get(nic["driver"], {})
            yield {
                **host,
                "driver": nic["driver"],
                "queues": nic["queues"],
                "cpus_per_queue": host["cpus"] / nic["queues"],
                "free_cores": _free(host, described["nics"], nic),
                "default_route": position == 0,
                "has": {**host["has"], **driver},
            }
    elif each == "disk":
        for disk in described["disks"]:
            kind = {"vbd": "xvd", "nvme": "instance_store" if disk.get("model") == STORE else "ebs"}
            if disk.get("driver", "nvme") in kind:
                yield {**host, "kind": kind[disk.get("driver", "nvme")]}
    else:
        yield host


def _free(host: Dict[str, Any], nics: List[Dict[str, Any]], nic: Dict[str, Any]) -> int:
    """Cores without an interrupt on the nodes of those that answer this NIC's queues."""
    per_node = host["cores"] // host["nodes"]
    near = [other for other in nics if other["node"] == nic["node"] or nic["node"] < 0]
    answering = sum(other["queues"] for other in near)
    nodes = 1 if nic["node"] >= 0 else -(-answering // per_node)
    return int(per_node * min(nodes, host["nodes"]) - answering)


def rows() -> Iterator[Tuple[str, ...]]:
    """The table, line by line; base has the rows of the checks."""
    hosts = list(RULES["hosts"])
    yield ("workload", "concern", "knob", *hosts)
    for workload in ("base", *NAMED):
        for knob in values(workload):
            yield (workload, *knob.split("."), *(statuses(workload, knob, name) for name in hosts))
        for knob in RULES["checks"] if workload == "base" else ():
            yield (workload, *knob.split("."), *(check(knob, name) for name in hosts))


def table() -> str:
    """The text of docs/workload_status.csv."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows())
    return stream.getvalue()


def instance_type(name: str) -> Optional[str]:
    """The type that somebody has to name, because a Xen host doesn't know its own."""
    host = RULES["hosts"][name]
    return host.get("type") if host["class"] == "xen_hvm" else None


if __name__ == "__main__":
    argparse.ArgumentParser("python -m tests.support.workload_rules", description=__doc__).parse_args()
    TABLE.write_text(table(), "utf-8")
