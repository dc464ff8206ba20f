# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three network interfaces of a real kernel in one subnet, and a peer that sees by which of them an answer comes.

Run it in a network namespace of its own (`python -m tests.support.kernel.routed_world`): it tunes and restores there,
and prints as JSON what ip(8) and the peer saw. The peer is another namespace, with the other end of each cable. Files
of the host are those of a fake kernel, because a cable of the kernel has no hardware.
"""

from __future__ import annotations

import errno
import io
import json
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, Dict, List

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import ioctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.fingerprint import fingerprint
from ansible_collections.nearmetal.ec2.plugins.modules import network_routes, restore

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import built
from tests.support.kernel.peer import asked, namespace, of_peer

NAMES = ("a0", "a1", "a2")
# Of the three in turn. The kernel calls the last two secondary: others of their subnet came first.
ADDRESSES = ("10.0.0.5", "10.0.0.6", "10.0.0.7", "fd00:1::5", "fd00:1::6", "fd00:1::7", "10.0.0.8", "10.0.0.9")
NEAR = {4: "10.0.0.100", 6: "fd00:1::100"}
FAR = {4: "198.51.100.9", 6: "fd00:2::9"}
PORT = 7000
SHAPE: Dict[str, Any] = {
    "shape": {"sockets": 1, "cores": 2, "threads": 1, "nodes": 1},
    "files": {
        "/sys/devices/virtual/dmi/id/sys_vendor": "Amazon EC2\n",
        "/sys/devices/virtual/dmi/id/product_name": "m5.large\n",
        "/proc/cpuinfo": "processor\t: 0\nflags\t\t: hypervisor\n\n",
        "/proc/sys/kernel/osrelease": "6.1.0\n",
        "/proc/sys/kernel/arch": "x86_64\n",
        "/proc/cmdline": "ro\n",
        "/etc/os-release": "ID=debian\n",
    },
    "nics": [
        {"name": name, "driver": "ena", "place": f"0000:00:0{number}.0", "queues": 2}
        for number, name in enumerate(NAMES, 5)
    ],
}


class Routed(FakeKernel):
    """A fake kernel with the routing of the real one."""

    silent = False  # the kernel refuses to list its rules

    def _route(self, request: bytes) -> bytes:
        if self.silent and struct.unpack_from("=H", request, 4)[0] == 34:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return ioctl.ask_routes(request)


def ip(*words: str) -> str:
    """What ip(8) prints."""
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def connect(peer: int) -> None:
    """Lay the cables and give both ends their addresses; the first interface has the default routes."""
    ip("link", "set", "lo", "up")
    of_peer(peer, "ip", "link", "set", "lo", "up")
    for number, name in enumerate(NAMES):
        other = f"b{number}"
        ip("link", "add", name, "type", "veth", "peer", "name", other, "netns", str(peer))
        of_peer(peer, "ip", "link", "set", other, "up")
        ip("link", "set", name, "up")
        for text in ADDRESSES[number::3]:
            ip("address", "add", *([f"{text}/64", "nodad"] if ":" in text else [f"{text}/24"]), "dev", name)
    for text in ("10.0.0.1/24", "10.0.0.100/24", "fd00:1::1/64", "fd00:1::100/64"):
        of_peer(peer, "ip", "address", "add", text, "dev", "b0", *(["nodad"] if ":" in text else []))
    # The router has the same address behind each interface, as in a VPC; IPv6 neighbors ask by the interface.
    for number in (1, 2):
        of_peer(peer, "ip", "address", "add", "fd00:1::1/128", "dev", f"b{number}", "nodad")
        of_peer(peer, "ip", "address", "add", "fd00:1::100/128", "dev", f"b{number}", "nodad")
    for text in FAR.values():
        of_peer(peer, "ip", "address", "add", text, "dev", "lo")
    for number, address in enumerate(ADDRESSES):
        of_peer(peer, "ip", "route", "replace", address, "dev", f"b{number % 3}")
    ip("route", "add", "default", "via", "10.0.0.1", "dev", "a0")
    for number, name in enumerate(NAMES):
        ip("-6", "route", "add", "default", "via", "fd00:1::1", "dev", name, "metric", str(1024 + number))


def serve() -> None:
    """Answer on each address, from that address."""
    for address in ADDRESSES:
        server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((address, PORT))
        threading.Thread(target=_answer, args=(server,), daemon=True).start()


def _answer(server: socket.socket) -> None:
    while True:
        data, sender = server.recvfrom(64)
        with suppress(OSError):  # its address went with its interface
            server.sendto(data, sender)


def seen(peer: int) -> Dict[str, List[str]]:
    """Address → the interfaces by which its answers to a near and to a far peer come."""
    return {address: [_asked(peer, place, address) for place in (NEAR, FAR)] for address in ADDRESSES}


def _asked(peer: int, places: Dict[int, str], address: str) -> str:
    return asked(peer, "udp", places[6 if ":" in address else 4], address, PORT)


def state() -> Dict[str, Any]:
    """All rules and routes, but those of IPv6 that the kernel makes by itself, soon after a link comes up."""
    texts = {}
    for family in ("-4", "-6"):
        texts[f"rules {family}"] = ip(family, "rule").splitlines()
        lines = ip(family, "route", "show", "table", "all").splitlines()
        texts[f"routes {family}"] = sorted(line for line in lines if "fe80:" not in line and "table local" not in line)
    return texts


def run(host: FakeKernel, main: Any, check: bool = False, **options: Any) -> Dict[str, Any]:
    """Call a module's main() and return what it printed."""
    from ansible.module_utils.testing import patch_module_args

    printed = io.StringIO()
    with patch_module_args({**options, "_ansible_check_mode": check}), redirect_stdout(printed), suppress(SystemExit):
        main(host)
    result: Dict[str, Any] = json.loads(printed.getvalue())
    return {key: result.get(key) for key in ("changed", "failed", "msg", "actions", "findings")}


def life(host: Routed, peer: int) -> Dict[str, Any]:
    """Tune, disturb, unplug and restore; what was seen after each step."""
    wanted = {"own_routes": "enabled", "persist": False}
    events: Dict[str, Any] = {"untuned": seen(peer), "before": state()}
    events["checked"] = run(host, network_routes.main, check=True, **wanted)
    events["after check"] = state()
    events["applied"] = run(host, network_routes.main, **wanted)
    events["tuned"] = seen(peer)
    events["state tuned"] = state()
    events["rules by whom"] = [line for family in ("-4", "-6") for line in ip("-d", family, "rule").splitlines()]
    events["again"] = run(host, network_routes.main, **wanted)
    events["restored"] = run(host, restore.main)
    events["after restore"], events["restored answers"] = state(), seen(peer)
    run(host, network_routes.main, **wanted)
    events["looks"] = [fingerprint(host)]
    ip("rule", "delete", "from", ADDRESSES[2], "priority", "27000")
    events["looks"].append(fingerprint(host))
    ip("route", "flush", "table", f"{2700000 + index('a1')}")
    events["looks"].append(fingerprint(host))
    ip("-6", "route", "flush", "table", f"{2700000 + index('a2')}")
    events["looks"].append(fingerprint(host))
    events["repaired"] = run(host, network_routes.main, **wanted)
    events["looks"].append(fingerprint(host))
    events["after repair"] = _asked(peer, FAR, ADDRESSES[1])
    ip("address", "delete", f"{ADDRESSES[7]}/24", "dev", "a1")
    ip("address", "add", f"{ADDRESSES[7]}/24", "dev", "a2")
    events["moved"] = run(host, network_routes.main, **wanted)
    events["after move"] = _asked(peer, FAR, ADDRESSES[7])
    events["moved again"] = run(host, network_routes.main, **wanted)
    ip("link", "delete", "a2")
    shutil.rmtree(Path(host.root) / "sys/class/net/a2")
    events["without a2"] = run(host, network_routes.main, **wanted)
    events["rules without a2"] = state()["rules -4"]
    host.silent = True
    events["silent"] = run(host, restore.main)
    host.silent = False
    events["restored at last"] = run(host, restore.main)
    events["at last"] = state()
    return events


def index(name: str) -> int:
    """The number of an interface."""
    return socket.if_nametoindex(name)


def main() -> None:
    """Both namespaces, and the life in them."""
    with tempfile.TemporaryDirectory() as folder, namespace() as peer:
        connect(peer)
        serve()
        host = Routed(Path(folder), built(SHAPE))
        for name in NAMES:
            (Path(folder) / f"sys/class/net/{name}/ifindex").write_text(f"{index(name)}\n")
        print(json.dumps(life(host, peer)))


if __name__ == "__main__":
    main()
