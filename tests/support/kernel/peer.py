# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A peer in a network namespace of its own, and a capture of the interface by which an answer comes to it.

The peer's ends of the cables are called b0, b1 and so on.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
from typing import Iterator

# Where the sender's address and the protocol are in a packet, by family.
_PLACES = {socket.AF_INET: (12, 9), socket.AF_INET6: (8, 6)}
_KINDS = {"udp": (socket.SOCK_DGRAM, 17), "tcp": (socket.SOCK_STREAM, 6)}
_SENT = 4
_PATIENCE_SECONDS = 10


@contextlib.contextmanager
def namespace() -> Iterator[int]:
    """A process in a new network namespace, for the length of a with statement."""
    # It says when it is in its namespace, and ends with its input.
    command = ["unshare", "--net", "sh", "-c", "echo ready; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        peer.stdout.readline()
        try:
            yield peer.pid
        finally:
            peer.stdin.close()


def of_peer(peer: int, *argv: str) -> str:
    """What a command prints in the namespace of the peer."""
    inside = ["nsenter", f"--net=/proc/{peer}/ns/net", *argv]
    return subprocess.run(inside, check=True, capture_output=True, text=True).stdout


def asked(peer: int, kind: str, source: str, address: str, port: int) -> str:
    """Let the peer ask from one of its addresses; the interface by which the answer comes, or `none`."""
    return of_peer(peer, sys.executable, "-m", __name__, kind, source, address, str(port)).strip()


def main(kind: str, source: str, address: str, port: str) -> None:
    """Run in the namespace: send a packet, or ask for a connection, and print where a capture sees the answer."""
    captures = {}
    for _number, name in socket.if_nameindex():
        if name.startswith("b"):
            capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            capture.bind((name, 3))
            captures[capture] = name
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sort, protocol = _KINDS[kind]
    client = socket.socket(family, sort)
    client.bind((source, 0))
    client.setblocking(False)
    client.connect_ex((address, int(port)))
    if kind == "udp":
        client.send(b"who")
    packed = socket.inet_pton(family, address)
    begin, place = _PLACES[family]
    while True:
        ready, _write, _errors = select.select(list(captures), [], [], _PATIENCE_SECONDS)
        if not ready:
            print("none")
            return
        for capture in ready:
            packet, about = capture.recvfrom(2048)
            if about[2] != _SENT and packet[begin : begin + len(packed)] == packed and packet[place] == protocol:
                print(captures[capture])
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
