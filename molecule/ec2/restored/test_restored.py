# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host: every knob and every folder of ours as it was."""

from __future__ import annotations

from testinfra.host import Host


def test_every_knob_is_as_before(host: Host) -> None:
    assert host.check_output("wc -l < /root/before/knobs") != "0"
    assert host.check_output("sh /root/look.sh /root/after && diff /root/before/knobs /root/after/knobs") == ""


def test_no_file_differs(host: Host) -> None:
    assert host.check_output("sh /root/look.sh /root/after && diff /root/before/files /root/after/files") == ""


def test_nothing_of_nearmetal_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""
