# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error message for an invalid option; nothing is written and nothing is guessed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import LONGEST_SENTENCE
from ansible_collections.nearmetal.ec2.plugins.modules import (
    block_storage,
    clocksource,
    confirm,
    network_facts,
    network_stack,
    restore,
    smt,
    tune,
)

from tests.support import fresh_host

Call = Callable[..., Dict[str, Any]]
INF, NAN = float("inf"), float("nan")
HOSTS = ["metal", "nitro_big"]
_INT = 2147483647
_SOMAXCONN = "network_stack.somaxconn"
_LEFT_OUT = "must be a mapping of options, not {}; to leave {} out, name its knobs in exclude, such as {}.{}"

# concern, options, what the message begins with
OPTIONS: List[Tuple[str, Any, str]] = [
    ("numa", {"zone_reclaim_mode": INF}, "numa.zone_reclaim_mode must be a whole number from 0 to 7, not inf"),
    ("numa", {"zone_reclaim_mode": NAN}, "numa.zone_reclaim_mode must be a whole number from 0 to 7, not nan"),
    ("numa", {"zone_reclaim_mode": True}, "numa.zone_reclaim_mode must be a whole number from 0 to 7, not true"),
    ("network_stack", {"somaxconn": 4096.9}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not 4096.9"),
    ("network_stack", {"somaxconn": "4_096"}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not '4_096'"),
    ("network_stack", {"somaxconn": "٤٠٩٦"}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not '٤٠٩٦'"),
    ("network_stack", {"somaxconn": "1e3"}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not '1e3'"),
    ("network_stack", {"somaxconn": ""}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not ''"),
    ("network_stack", {"somaxconn": [1]}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not [1]"),
    ("network_stack", {"somaxconn": 10**40}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not 1000"),
    ("network_stack", {"somaxconn": -5}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not -5"),
    ("network_stack", {"somaxconn": 0}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not 0"),
    (
        "network_stack",
        {"rmem_max": 2**31},
        f"network_stack.rmem_max must be a whole number from 2304 to {_INT}, not 2147483648",
    ),
    ("network_stack", {"keepalive_time": 0}, "network_stack.keepalive_time must be a whole number from 1 to 32767"),
    ("network_stack", {"netdev_budget": 0}, "network_stack.netdev_budget must be a whole number from 1 to 10000"),
    ("network_stack", {"mtu": 68}, "network_stack.mtu must be a whole number from 1280 to 9001, not 68"),
    ("network_stack", {"rx_usecs": -1}, "network_stack.rx_usecs must be a whole number from 0 to 100000, not -1"),
    ("block_storage", {"nr_requests": 0}, "block_storage.nr_requests must be a whole number from 4 to 65536, not 0"),
    (
        "block_storage",
        {"disks": [{"device": "nvme1n1", "nr_requests": 3}]},
        "block_storage.disks[0].nr_requests must be a whole number from 4 to 65536, not 3",
    ),
    (
        "network_stack",
        {"tx_queue": {"length": 0}},
        "network_stack.tx_queue.length must be a whole number from 1 to 100000, not 0",
    ),
    ("network_stack", {"tx_queue": 7}, "network_stack.tx_queue must be a mapping of options, not 7"),
    ("network_stack", {"offloads": ["gro"]}, "network_stack.offloads must be a mapping of options, not ['gro']"),
    ("network_stack", {"tcp_rmem": "9 8 7"}, "network_stack.tcp_rmem must be 3 ascending numbers from 1 to"),
    ("network_stack", {"tcp_rmem": "1 2 99999999999"}, "network_stack.tcp_rmem must be 3 ascending"),
    (
        "network_stack",
        {"port_range": "65535 1024"},
        "network_stack.port_range must be 2 ascending numbers from 1024 to 65535, not '65535 1024'",
    ),
    ("network_stack", {"port_range": "0 99999"}, "network_stack.port_range must be 2 ascending numbers"),
    (
        "network_stack",
        {"congestion_control": "cubic\nkernel.core_pattern = |/tmp/x"},
        r"network_stack.congestion_control must be one line without control characters, not 'cubic\nkernel.core",
    ),
    (
        "network_stack",
        {"qdisc": "fq; reboot"},
        "network_stack.qdisc must be a name of letters, digits and _, not 'fq; reboot'",
    ),
    ("network_stack", {"qdisc": "../../x"}, "network_stack.qdisc must be a name of letters, digits and _"),
    (
        "network_stack",
        {"interfaces": {"name": "ens5"}},
        "network_stack.interfaces must be a list, not {'name': 'ens5'}: begin",
    ),
    (
        "network_stack",
        {"interfaces": "ens5"},
        "network_stack.interfaces must be a list, not 'ens5': begin each of its entries",
    ),
    ("network_stack", {"interfaces": ["ens5"]}, "network_stack.interfaces[0] must be a mapping of options, not 'ens5'"),
    ("network_stack", {"interfaces": [{"mtu": 1500}]}, "network_stack.interfaces[0].name is required"),
    (
        "network_stack",
        {"interfaces": [{"name": "ens5", "mtu": 1500}, {"name": "ens5", "rx_usecs": 1}]},
        "network_stack.interfaces[0] and network_stack.interfaces[1] both give options to 'ens5': make them one entry",
    ),
    ("clocksource", {"source": "tsc evil"}, "clocksource.source: this kernel doesn't offer tsc evil; it offers tsc "),
    (
        "clocksource",
        {"source": "{{ 7 * 7 }}"},
        "clocksource.source: this kernel doesn't offer {{ 7 * 7 }}; it offers tsc",
    ),
    ("clocksource", {"source": "x" * 10**6}, "clocksource.source must be text of at most 4096 characters"),
    ("clocksource", {"source": True}, "clocksource.source must be a word, not a YAML boolean: put true in quotes"),
    ("clocksource", {"source": ["tsc"]}, "clocksource.source must be a word, not ['tsc']"),
    ("clocksource", {"persist": "maybe"}, "clocksource.persist is true, false or last, not 'maybe'"),
    ("clocksource", {"tsc_reliable": "y" * 4000}, "clocksource.tsc_reliable can't be 'yyy"),
    (
        "hugepages",
        {"pages": {"size": "2M", "count": 1}},
        "hugepages.pages must be a list, not {'size': '2M', 'count': 1}: begin",
    ),
    (
        "hugepages",
        {"pages": [{"size": "2M", "count": -1}]},
        "hugepages.pages[0].count must be a whole number from 0 to 1073741824",
    ),
    (
        "hugepages",
        {"pages": [{"size": "2M", "count": 10**12}]},
        "hugepages.pages[0].count must be a whole number from 0 to 1073741824, not 1000000000000",
    ),
    (
        "hugepages",
        {"pages": [{"size": "2M", "percent_of_memory": 100}]},
        "hugepages.pages[0].percent_of_memory must be a whole number from 0 to 80, not 100",
    ),
    (
        "hugepages",
        {"pages": [{"size": "2M", "count": 1, "nodes": "0-99999999"}]},
        "hugepages.pages[0].nodes: this host has no node0-99999999; it has node0",
    ),
    (
        "hugepages",
        {"pages": [{"size": "2M", "count": 1}, {"size": "2048k", "count": 2}]},
        "hugepages.pages[0] and hugepages.pages[1] both ask for pages of 2048kB: entries of the same size must each",
    ),
    ("hugepages", {"mount": "/mnt/huge"}, "hugepages.mount must be a mapping of options, not '/mnt/huge'"),
    *(
        (
            "hugepages",
            {"mount": {"path": path}},
            f"hugepages.mount.path must be a directory that nothing else uses, {rest}, not {path!r}",
        )
        for path in ("/mnt/../etc", "/mnt/a b", "/etc", "/proc", "/")
        for rest in ("with a name of letters, digits and _.-, such as /mnt/huge-1G",)
    ),
    ("hugepages", {"group": "root evil"}, "hugepages.group: /etc/group has no root evil; create it first"),
    ("hugepages", {"group": "-x"}, "hugepages.group: /etc/group has no -x; create it first"),
    (
        "numa",
        {"services": [{"unit": "../../x.service", "nodes": "0"}]},
        "numa.services[0].unit must be the full name of a service, such as postgresql.service, not '../../x.service'",
    ),
    (
        "numa",
        {"services": "x.service"},
        "numa.services must be a list, not 'x.service': begin each of its entries with a dash",
    ),
    ("numa", {"x" * 10**5: 1}, "numa.'xxx"),
    ("numa", {"zone": 1}, "numa.zone isn't an option; numa has allow_hidden_nodes, allow_not_ec2, balancing,"),
    (
        "network_irq",
        {"policy": "dedicated", "irq_cpus": "0-4294967295"},
        "network_irq.irq_cpus: '0-4294967295' isn't a list of CPUs",
    ),
    (
        "network_irq",
        {"policy": "dedicated", "irq_cpus": ""},
        "network_irq.irq_cpus: '' can't be used: it names no CPU; the online CPUs are 0-15",
    ),
    (
        "network_irq",
        {"policy": "dedicated", "compute_units": ["x.service foo"]},
        "network_irq.compute_units: 'x.service foo' isn't the full name of a service, such as x.service",
    ),
    (
        "network_irq",
        {"interfaces": [{"name": "../../etc", "queues": "1"}]},
        "network_irq.interfaces: no hardware is behind an interface '../../etc'; this host has ens5",
    ),
    (
        "network_irq",
        {"policy": "auto", "interfaces": [{"name": "ens5", "queues": "1"}, {"name": "ens5", "queues": "2"}]},
        "network_irq.interfaces[0] and network_irq.interfaces[1] both give options to 'ens5': make them one entry",
    ),
    (
        "block_storage",
        {"disks": [{"device": "../../../etc/shadow", "scheduler": "none"}]},
        "block_storage.disks[0].device: this host has no disk '../../../etc/shadow'; it has ",
    ),
    (
        "block_storage",
        {"disks": [{"device": "nvme0n1", "nomerges": 1}, {"device": "/dev/nvme0n1", "nomerges": 2}]},
        "block_storage.disks[0] and block_storage.disks[1] both give nomerges to 'nvme0n1': make them one entry",
    ),
    (
        "block_storage",
        {"disks": [{"kind": "ebs", "nomerges": 1}, {"kind": "ebs", "rq_affinity": 2}]},
        "block_storage.disks[0] and block_storage.disks[1] both give options to 'ebs': make them one entry",
    ),
    (
        "block_storage",
        {"disks": {"device": "nvme0n1"}},
        "block_storage.disks must be a list, not {'device': 'nvme0n1'}: begin each of its entries with a dash",
    ),
    (
        "block_storage",
        {"disks": [{}] * 1001},
        "block_storage.disks must be a list of at most 1000 entries, not of 1001",
    ),
    (
        "block_storage",
        {"read_ahead_kb": 2**62},
        "block_storage.read_ahead_kb must be a whole number from 0 to 1048576, not 4611686018427387904",
    ),
    ("block_storage", {"nomerges": 3}, "block_storage.nomerges can't be 3; choose one of 0, 1, 2"),
    (
        "block_storage",
        {"io_timeout": "99999999999999999999"},
        "block_storage.io_timeout must be aws, max, or 1 to 4294967295 milliseconds, not '99999999999999999999'",
    ),
    (
        "block_storage",
        {"io_timeout": 0},
        "block_storage.io_timeout must be aws, max, or 1 to 4294967295 milliseconds, not '0'",
    ),
    (
        "cpu_power",
        {"max_exit_latency_us": -1},
        "cpu_power.max_exit_latency_us must be a whole number from 0 to 1000000, not -1",
    ),
    *(
        ("smt", given, f"concerns.smt {_LEFT_OUT.format(message, 'smt', 'smt', 'threads')}")
        for given, message in (
            (False, "false"),
            (0, "0"),
            ("", "''"),
            ([], "[]"),
            ([1], "[1]"),
            ("disabled", "'disabled'"),
        )
    ),
    (
        "kernel_check",
        False,
        "concerns.kernel_check must be a mapping of options, not false; to leave kernel_check out, name",
    ),
    ("7", {}, "concern '7' is unknown; there are blkfront_check, block_storage,"),
    ("z" * 10**5, {}, "concern 'zzz"),
]

# arguments of tune, what the message begins with
ARGUMENTS: List[Tuple[Dict[str, Any], str]] = [
    ({"concerns": False}, "tune.concerns must be a mapping, not false"),
    ({"concerns": ["numa"]}, "tune.concerns must be a mapping, not ['numa']"),
    ({"concerns": "numa"}, "tune.concerns must be a mapping, not 'numa'"),
    ({"concerns": {}}, "nothing to tune: name a workload or concerns"),
    ({"workload_concerns": {"smt": False}}, "workload_concerns.smt must be a mapping of options, not false; to leave"),
    ({"workload": "../x"}, "workload '../x' is unknown; there are analytics, base,"),
    ({"workload": "w" * 4000}, "workload 'www"),
    ({"workload": {"web": True}}, "tune.workload must be a list, not {'web': True}: begin each of its entries"),
    ({"workload": False}, "tune.workload must be a list, not false: begin each of its entries with a dash"),
    ({"exclude": {"smt": "threads"}}, "tune.exclude must be a list, not {'smt': 'threads'}: begin each of its entries"),
    ({"exclude": [{"a": 1}]}, "tune.exclude[0] must be a word, not {'a': 1}"),
    ({"exclude": False}, "tune.exclude must be a list, not false"),
    ({"exclude": "smt"}, "tune_exclude[0] must be concern.knob, such as cpu_power.idle, not 'smt'"),
    ({"waivers": [7]}, "tune.waivers[0] must be a mapping of options, not 7"),
    (
        {"waivers": {"knob": "smt.threads"}},
        "tune.waivers must be a list, not {'knob': 'smt.threads'}: begin each of its",
    ),
    (
        {"waivers": [{"knob": "smt.threads", "until": "x"}]},
        "tune.waivers[0].until isn't an option; tune.waivers[0] has expires",
    ),
    ({"waivers": [{"knob": "smt.threads"}]}, "tune.waivers[0].reason is required"),
    (
        {"waivers": [{"knob": "smt.threads", "reason": "x", "expires": "2026-02-30"}]},
        "tune_waivers[0].expires must be the last day of the waiver, such as 2027-01-31, not '2026-02-30'",
    ),
    ({"prune": "perhaps"}, "tune.prune is true or false, not 'perhaps'"),
    ({"on_failure": "panic"}, "tune.on_failure can't be 'panic'; choose one of keep, rollback"),
    ({"confirm_within": 1.5}, "tune.confirm_within must be a whole number"),
    ({"tune_workload": "web"}, "tune.tune_workload isn't an option; tune has workload, allow_not_ec2, bake,"),
]

# A single module reports the same, before Ansible converts the value.
ALONE: List[Tuple[Any, Dict[str, Any], str]] = [
    (network_stack, {"somaxconn": "4_096"}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not '4_096'"),
    (network_stack, {"somaxconn": True}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not true"),
    (network_stack, {"somaxconn": INF}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not inf"),
    (network_stack, {"z" * 10**6: 1}, "network_stack.'zzz"),
    (
        block_storage,
        {"disks": "nvme0n1"},
        "block_storage.disks must be a list, not 'nvme0n1': begin each of its entries with",
    ),
    (clocksource, {"source": False}, "clocksource.source must be a word, not a YAML boolean: put false in quotes"),
    (smt, {"threads": "q" * 4000}, "smt.threads can't be 'qqq"),
    (smt, {"threads": False}, "smt.threads can't be false; choose one of enabled, disabled, kernel"),
    (smt, {"state": "absent"}, "smt.state can't be 'absent'; choose one of present, restored"),
    (
        restore,
        {"concerns": {"smt": {}}},
        "restore.concerns must be a list, not {'smt': {}}: begin each of its entries with",
    ),
    (restore, {"concerns": ["nothing"]}, "concern 'nothing' is unknown; there are blkfront_check"),
    (confirm, {"now": True}, "confirm.now isn't an option; confirm has none"),
    (network_facts, {"sample_seconds": 61}, "network_facts.sample_seconds must be a whole number from 0 to 60, not 61"),
]


def require_sentence(result: Dict[str, Any], sentence: str) -> None:
    assert result.get("failed"), result["msg"]
    assert result["msg"].startswith(sentence)
    assert len(result["msg"]) <= LONGEST_SENTENCE
    assert result["msg"].isprintable()
    assert max(map(len, result["msg"].split())) <= 300, "a value of more than 300 characters"
    assert "exception" not in result


def written(root: Path) -> Dict[str, int]:
    return {str(path): os.lstat(path).st_mtime_ns for path in root.rglob("*")}


@pytest.mark.parametrize("name", HOSTS)
def test_options_of_a_concern(name: str, tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, name)
    before = written(tmp_path)
    for concern, options, sentence in OPTIONS:
        # If the user's value were ignored, the workload would apply its own.
        require_sentence(call(tune.main, host, check=True, workload="base", concerns={concern: options}), sentence)
    assert written(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"), ARGUMENTS, ids=[json.dumps(argument)[:40] for argument, _message in ARGUMENTS]
)
def test_arguments_of_tune(arguments: Dict[str, Any], sentence: str, tmp_path: Path, call: Call) -> None:
    require_sentence(call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, **arguments), sentence)


@pytest.mark.parametrize(
    ("module", "options", "sentence"), ALONE, ids=[message[:40] for _module, _given, message in ALONE]
)
def test_a_module_by_itself(module: Any, options: Dict[str, Any], sentence: str, tmp_path: Path, call: Call) -> None:
    require_sentence(call(module.main, fresh_host.fresh(tmp_path, "metal"), check=True, **options), sentence)


@pytest.mark.parametrize("given", [8192, "8192", " 8192\n", 8192.0])
def test_a_number_as_people_and_templates_write_it(given: Any, tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "nitro")
    result = call(network_stack.main, host, check=True, somaxconn=given, persist=False)
    assert result["diff"]["after"]["sysctl"] == {"net.core.somaxconn": "8192"}


@pytest.mark.parametrize("given", ["smt.threads,clocksource.source", ["smt.threads", "clocksource.source"]])
def test_a_list_of_words_may_be_one_text(given: Any, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, workload="low_latency", exclude=given)
    assert {"smt", "clocksource"} & {action["concern"] for action in result["actions"]} == set()


@pytest.mark.parametrize("given", ['{"numa": {"balancing": "disabled"}}', {"numa": {"balancing": "disabled"}}])
def test_a_mapping_may_be_json_as_the_command_line_hands_it_over(given: Any, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, concerns=given)
    assert result["diff"]["after"]["sysctl"] == {"kernel.numa_balancing": "0"}


def test_null_is_an_option_left_out(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    for null in ({"balancing": "disabled"}, {"balancing": "disabled", "persist": None, "nodes": None}):
        result = call(tune.main, host, check=True, concerns={"numa": null})
        assert "numa: would change kernel.numa_balancing 1 → 0, persisted, no reboot" in result["msg"]


def test_a_concern_without_options_gets_those_of_the_workload(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    plain, null, empty = (
        call(tune.main, host, check=True, workload="low_latency", concerns=concerns)
        for concerns in ({}, {"smt": None}, {"smt": {}})
    )
    assert plain["actions"] == null["actions"] == empty["actions"]
    assert "smt: would change" in plain["msg"]


def test_a_refusal_for_this_host_stays_a_finding(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    result = call(tune.main, host, check=True, concerns={"memory": {"min_free_kbytes": 2**31 - 1}})
    assert "memory: refused: 2147483647 kB is more than 5% of this host's memory" in result["msg"]
