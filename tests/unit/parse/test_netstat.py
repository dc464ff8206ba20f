# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of protocols, whose names are in the line above them."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import netstat


def test_counters_of_protocols_have_their_names_above_them() -> None:
    text = "Tcp: RtoMin MaxConn PassiveOpens\nTcp: 200 -1 7\nUdp: InErrors\nUdp: 3\nTcpExt: A B\nTcpExt: 1\n"
    assert netstat.parse(text) == {"Tcp.RtoMin": 200, "Tcp.MaxConn": -1, "Tcp.PassiveOpens": 7, "Udp.InErrors": 3}


def test_values_of_another_protocol_count_for_none() -> None:
    assert netstat.parse("Tcp: A\nUdp: 1\n") == {}
