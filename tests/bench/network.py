# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets per second that a lab host takes through one queue, through one with RPS, and through four.

`python -m tests.bench.network [--rounds 12] [--seconds 4] [--rate 400000]` from the root of the project, as root, on a
quiet machine. This machine sends UDP datagrams of 64 bytes from 16 ports over the tap device of the host's four-queue
NIC to a port that nobody listens on, `--rate` a second, more than the host takes. What counts is how many the host's
kernel hands to UDP, by its own /proc/net/snmp. Each round measures all three, one after the other, and the ratios are
taken within a round. Printed, never a test: the four emulated CPUs, QEMU and the sender share this machine's cores, so
no ratio can be larger than their number.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List

from lab.host import Host, instance

HOST_ADDRESS, GUEST_ADDRESS = "10.231.77.1", "10.231.77.2"
NIC = "ens6"
SHAPE = """\
like = "network"
about = "4 CPUs on one node, for a machine of few cores"
sockets = 1
cores = 4
threads = 1
nodes = 1
"""
# In every setting but the last, its interrupts go only to CPU 0; the other CPUs help.
SETTINGS = {
    "one queue": f"ethtool -L {NIC} combined 1; echo 0 > /sys/class/net/{NIC}/queues/rx-0/rps_cpus",
    "one queue with RPS": f"ethtool -L {NIC} combined 1; echo e > /sys/class/net/{NIC}/queues/rx-0/rps_cpus",
    "four queues": f"ethtool -L {NIC} combined 4; echo 0 | tee /sys/class/net/{NIC}/queues/rx-*/rps_cpus > /dev/null",
}
_PLACE = (
    f"device=$(basename $(readlink /sys/class/net/{NIC}/device)); queue=0;"
    ' for name in $(grep -o "$device-[io].*put[.][0-9]*" /proc/interrupts); do'
    " number=$(awk -v name=$name '$NF == name {print $1 + 0}' /proc/interrupts);"
    " echo ${name##*.} > /proc/irq/$number/smp_affinity_list; done"
)
_COUNT = "awk '/^Udp:/ && !names {names = 1; next} /^Udp:/ {print $2 + $3}' /proc/net/snmp"
_SENDER = """
import socket, sys, time
ports = []
for _port in range(16):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.connect((sys.argv[1], 9))
    one.setblocking(False)
    ports.append(one)
data = bytes(64)
rate = float(sys.argv[3])
start = now = time.monotonic()
sent = 0
while now < start + float(sys.argv[2]):
    while sent < (now - start) * rate:
        for one in ports:
            try:
                one.send(data)
            except OSError:
                pass
        sent += len(ports)
    time.sleep(0.0005)
    now = time.monotonic()
print(now - start)
"""


def main() -> None:
    """Print the rates, the ratios, and what else ran on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rate", type=int, default=400_000)
    options = parser.parse_args()
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        shape = Path(folder, "network4.toml")
        shape.write_text(SHAPE, encoding="utf-8")
        with instance.running(str(shape), f"bench-{os.getpid()}") as host:
            tap = connect(host)
            rounds = [
                {name: rate(host, change, options.seconds, options.rate) for name, change in SETTINGS.items()}
                for _round in range(options.rounds)
            ]
    loads.append(os.getloadavg()[0])
    load = f"load {loads[0]:.1f} before and {loads[1]:.1f} at the end, {os.cpu_count()} CPUs"
    print(
        f"{options.rounds} rounds of {options.seconds} s per setting, "
        f"{options.rate:,} packets/s sent through {tap}; {load}"
    )
    report(rounds)


def report(rounds: List[Dict[str, float]]) -> None:
    """Print medians and ratios."""
    for name in SETTINGS:
        rates = [found[name] for found in rounds]
        print(f"{name}: median {statistics.median(rates):,.0f} packets/s ({min(rates):,.0f} to {max(rates):,.0f})")
    for name in list(SETTINGS)[1:]:
        ratios = sorted(found[name] / found["one queue"] for found in rounds)
        print(f"{name} / one queue: median {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def connect(host: Host) -> str:
    """Give the NIC and its tap device addresses; return the tap's name."""
    with host.monitor() as monitor:
        found = re.search(r"net1: index=0,type=tap,ifname=(\w+)", monitor.human("info network"))
    if found is None:
        raise SystemExit("the second NIC of the shape has no tap device")
    tap = found[1]
    subprocess.run(["ip", "addr", "add", f"{HOST_ADDRESS}/24", "dev", tap], check=True)
    subprocess.run(["ip", "link", "set", tap, "up"], check=True)
    host.run(f"ip addr add {GUEST_ADDRESS}/24 dev {NIC}; ip link set {NIC} up")
    return tap


def rate(host: Host, change: str, seconds: int, sent: int) -> float:
    """Packets per second that reach UDP while this machine sends; counted while it is silent, before and after."""
    before = int(host.run(f"{change}; {_PLACE}; {_COUNT}").split()[-1])
    sender = [sys.executable, "-c", _SENDER, GUEST_ADDRESS, str(seconds), str(sent)]
    took = float(subprocess.run(sender, check=True, stdout=subprocess.PIPE, text=True).stdout)
    arrived = int(host.run(_COUNT)) - before
    if not arrived:
        raise SystemExit("no packet arrived")
    return arrived / took


if __name__ == "__main__":
    main()
