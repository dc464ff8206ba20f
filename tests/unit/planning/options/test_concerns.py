# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error message for an invalid option of a concern, on hosts that have all of its knobs; nothing is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support import fresh_host
from tests.support.sentence import require_sentence

Call = Callable[..., Dict[str, Any]]
INF, NAN = float("inf"), float("nan")
HOSTS = ["metal", "nitro_big"]
_INT = 2147483647
_SOMAXCONN = "network_stack.somaxconn"
_LEFT_OUT = "must be a mapping of options, not {}; to leave {} out, name its knobs, as in tune_exclude: [{}.{}]"

# concern, options, what the message begins with
OPTIONS: List[Tuple[str, Any, str]] = [
    ("numa", {"zone_reclaim_mode": INF}, "numa.zone_reclaim_mode must be a whole number from 0 to 7, not inf"),
    ("numa", {"zone_reclaim_mode": NAN}, "numa.zone_reclaim_mode must be a whole number from 0 to 7, not nan"),
    ("numa", {"zone_reclaim_mode": True}, "numa.zone_reclaim_mode must be a whole number from 0 to 7, not true"),
    *(
        ("network_stack", {"somaxconn": value}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not {shown}")
        for value, shown in (
            *((4096.9, "4096.9"), ("4_096", "'4_096'"), ("٤٠٩٦", "'٤٠٩٦'"), ("1e3", "'1e3'"), ("", "''"), ([1], "[1]")),
            *((10**40, "1000"), (-5, "-5"), (0, "0")),
        )
    ),
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
        for path in ("/mnt/../etc", "/mnt/a b", "/etc", "/proc", "/sys/kernel/huge", "/var", "/home", "/", "huge")
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
    *(
        (
            "block_storage",
            {"io_timeout": given},
            "block_storage.io_timeout must be aws, max, or 1 to 4294967295 millisec",
        )
        for given in ("99999999999999999999", 0, "30s")
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
    *(
        ("block_storage", {"disks": [disk]}, f"block_storage.disks[0]{says}")
        for disk, says in (
            ({"nomerges": 2}, ": give exactly one of kind, device and mount, not none"),
            (
                {"kind": "ebs", "mount": "/", "nomerges": 2},
                ": give exactly one of kind, device and mount, not kind and",
            ),
            ({"mount": "/srv", "nomerges": 2}, ".mount: no block device is mounted at /srv; this host has /, /data"),
            (
                {"kind": "virtio", "scheduler": 'none", RUN+="/bin/x'},
                ".scheduler must be the name of a scheduler, such",
            ),
            ({"kind": "ebs", "write_cache": "write_back"}, ": write_cache is set for a device or a mount point only"),
        )
    ),
    *(
        ("block_storage", options, f"block_storage.{says}")
        for options, says in (
            ({"max_sectors_kb": 4096}, "max_sectors_kb: nvme0n1 takes requests of at most 2048 KiB, not 4096"),
            ({"poll_queues": 400}, "poll_queues: 400 queues can't be polled by 16 CPUs; give 0 to 16"),
            (
                {"nr_requests": 4000, "scheduler": "mq-deadline"},
                "nr_requests: nvme0n1 takes at most 2048 with mq-deadline, not 4000",
            ),
            ({"nr_requests": 2000}, "nr_requests: nvme0n1 takes at most 1023 without a scheduler, the depth of its"),
            ({"scheduler": "cfq"}, "scheduler: nvme0n1 doesn't offer cfq; it offers none mq-deadline"),
        )
    ),
    (
        "cpu_power",
        {"max_exit_latency_us": 10, "method": "boot"},
        "cpu_power.max_exit_latency_us: no kernel argument takes a latency; use method: runtime, or idle: c1",
    ),
    (
        "cpu_power",
        {"max_exit_latency_us": 9, "idle": "c1"},
        "cpu_power: idle and max_exit_latency_us exclude each other; give one of them",
    ),
    *(
        ("hugepages", {"pages": [{"size": "2M", **page} for page in pages]}, f"hugepages.pages[0]{says}")
        for pages, says in (
            ([{"count": 10, "nodes": "0,0"}], ".nodes: node0 is named twice"),
            ([{"count": 512, "nodes": "2"}], ".nodes: this host has no node2; it has node0 node1; write 0,1 or spread"),
            ([{"count": 1, "percent_of_memory": 1}], ": give either count or percent_of_memory"),
            ([{}], ": give either count or percent_of_memory"),
            ([{"size": "huge", "count": 5}], ".size: this kernel has no huge pages of huge; it has 2048kB 1048576kB"),
            ([{"count": 1}, {"count": 2, "nodes": "1"}], " and hugepages.pages[1] both ask for pages of 2048kB"),
            ([{"count": 1, "nodes": "0,1"}, {"count": 2, "nodes": "1"}], " and hugepages.pages[1] both ask for pages"),
        )
    ),
    (
        "hugepages",
        {"pages": [{"size": "2M", "percent_of_memory": 10}], "method": "boot"},
        "hugepages.pages[0].percent_of_memory: a kernel argument can't carry a number that depends on the size of the",
    ),
    (
        "hugepages",
        {"max_ptes_none": 600},
        "hugepages.max_ptes_none: of a huge page's 512 small ones at most 511 may be unused",
    ),
    (
        "hugepages",
        {"mount": {"path": "/mnt/huge", "size": "16G"}},
        "hugepages.mount.size: this kernel has no huge pages of 16G; it has 2048kB 1048576kB",
    ),
    (
        "network_routes",
        {"own_routes": "disabled"},
        "network_routes.own_routes can't be 'disabled'; choose one of enabled, kernel",
    ),
    (
        "network_stack",
        {"tcp_mem": "300 200 100"},
        f"network_stack.tcp_mem must be 3 ascending numbers from 1 to {_INT}",
    ),
    ("network_stack", {"mtu": 9216}, "network_stack.mtu must be a whole number from 1280 to 9001, not 9216"),
    (
        "network_stack",
        {"reserved_ports": "kubelet"},
        "network_stack.reserved_ports must be auto, or ports such as 8080,30000-32767, not 'kubelet'",
    ),
    *(
        ("numa", {"services": [{"unit": "db.service", **service} for service in services]}, f"numa.services[{says}")
        for services, says in (
            ([{"near_interface": "eth9"}], "0].near_interface: there is no eth9 on this host's PCI bus"),
            ([{}], "0] (db.service): give one of nodes, near_interface and near_device"),
            ([{"nodes": "1", "near_interface": "ens5"}], "0] (db.service): give one of nodes, near_interface and"),
            ([{"nodes": "1-2"}], "0].nodes: this host has nodes 0-1, not '1-2'"),
            ([{"nodes": "0-1", "policy": "preferred"}], "0] (db.service): policy preferred takes one node, not 0-1"),
            ([{"nodes": "1"}, {"nodes": "1"}], "1].unit: db.service is in services[0] already"),
            ([{"unit": "postgresql", "nodes": "1"}], "0].unit must be the full name of a service, such as postgresql."),
        )
    ),
    ("service_check", {"services": ["nginx"]}, "service_check.services must name units such as nginx.service, not"),
    *(
        ("memory", {"dirty": text}, "memory.dirty must be a share of the memory, 1% to 100%, or a number of bytes from")
        for text in ("0%", "101%", "20 percent", "4096", "٢٠%")
    ),
]


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
