# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What QEMU says between a command and its answer is not lost."""

from __future__ import annotations

import json
import socket

from lab.qemu.monitor import Channel


def test_an_event_before_an_answer_is_reported_later() -> None:
    own_end, machine_end = socket.socketpair()
    shutdown = {"event": "SHUTDOWN", "data": {"guest": True, "reason": "guest-reset"}}
    resume = {"event": "RESUME"}
    for line in (shutdown, {"return": {}}, resume):
        machine_end.sendall(json.dumps(line).encode() + b"\n")
    machine_end.shutdown(socket.SHUT_WR)
    channel = Channel(own_end)
    assert channel.execute("cont") == {}
    assert list(channel.events()) == [shutdown, resume]
    channel.close()
    machine_end.close()
