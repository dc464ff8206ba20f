# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How facts read a host: nothing leads out of its root, nothing raises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Mapping

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

Build = Callable[[Mapping[str, str]], Host]


@pytest.mark.parametrize("target", ["/etc/secret", "../../../../../../../../etc/secret", "/a/../etc/secret"])
def test_no_link_leads_out_of_a_root(target: str, host_of: Build) -> None:
    host = host_of({"/etc/secret": "of this root", "/sys/deep/er/link": "-> " + target})
    assert host.text("/sys/deep/er/link") == "of this root"


def test_an_absolute_link_of_a_folder_stays_inside(host_of: Build) -> None:
    host = host_of({"/sys/devices/virtual/dmi/id/x": "1", "/sys/class/dmi": "-> /sys/devices/virtual/dmi"})
    assert host.line("/sys/class/dmi/id/x") == "1"
    assert host.names("/sys/class/dmi/id") == ["x"]
    assert host.exists("/sys/class/dmi/id/x")
    assert not Path(host.real("/sys/class/dmi/id/x")).is_symlink()


def test_a_loop_of_links_cannot_be_read(host_of: Build) -> None:
    host = host_of({"/a": "-> /b", "/b": "-> /a"})
    assert host.text("/a") is None
    assert host.names("/a") == []
    assert host.link("/a") == "/b"
    assert host.exists("/a")


@pytest.mark.parametrize("links", [39, 40, 41])
def test_a_chain_of_links_too_long_to_follow_leads_nowhere(links: int, host_of: Build, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of this machine")
    chain = {f"/l{number}": f"-> /l{number + 1}" for number in range(1, links)}
    host = host_of({**chain, f"/l{links}": "-> /last/secret", "/last/secret": f"-> {tmp_path}"})
    assert host.text("/l1") is None
    assert host.text("/l1/secret") is None
    assert host.names("/l1") == []
    assert not host.exists("/l1/secret")
    assert not host.fixed("/l1")


def test_an_unreadable_file_counts_as_missing(host_of: Build) -> None:
    host = host_of({"/folder/file": "x", "/empty": " \n"})
    for path in ("/folder", "/absent", "/folder/file/below", "/with\0nul", "/" + "n" * 300):
        assert host.text(path) is None
        assert host.line(path) is None
        assert host.records(path) is None
        assert host.link(path) is None
    assert host.line("/empty") is None
    assert host.names("/absent") == []


def test_text_keeps_no_nul_and_survives_what_is_no_utf8(host_of: Build) -> None:
    assert host_of({"/f": "0\n\0\udcff"}).text("/f") == "0\n\ufffd"


def test_text_ends_at_the_limit(host_of: Build) -> None:
    assert host_of({"/f": "x" * 500000}).text("/f", 200000) == "x" * 200000


def test_a_pipe_that_nobody_writes_to_does_not_hang(host_of: Build) -> None:
    host = host_of({"/f": ""})
    os.mkfifo(host.real("/pipe"))
    writer = os.open(host.real("/pipe"), os.O_RDWR)
    try:
        assert host.text("/pipe") is None
        assert host.records("/pipe") == ""
    finally:
        os.close(writer)


def test_records_of_a_plain_file_are_its_text(host_of: Build) -> None:
    text = "6,1,2,-;message {}\n"
    whole = "".join(text.format(number) for number in range(2000))
    assert host_of({"/dev/kmsg": whole}).records("/dev/kmsg") == whole


def test_only_the_running_system_has_a_machine(root: Path) -> None:
    assert Host().machine() == os.uname().machine
    assert Host(str(root)).machine() is None


@pytest.mark.parametrize("name", ["//dev/null", "/etc/../dev/null", "/proc/self/root/dev/null"])
def test_no_device_is_opened_by_another_name(name: str) -> None:
    assert Host().text(name) is None


def test_nothing_of_a_device_or_pipe_behind_a_link_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(writer, b"for its reader")
        for target in ("/dev/zero", str(pipe)):
            (tmp_path / "link").unlink(missing_ok=True)
            (tmp_path / "link").symlink_to(target)
            assert Host().raw(f"/{tmp_path}/link") is None  # which is below /dev/shm at times
        assert os.read(writer, 99) == b"for its reader"
    finally:
        os.close(writer)


def test_no_device_is_opened_to_read_a_text(host_of: Build) -> None:
    host = host_of({"dev/watchdog": "fed"})
    assert host.text("/dev/watchdog") is None
    assert host.line("/dev/watchdog") is None
    assert host.exists("/dev/watchdog")
    assert host.records("/dev/watchdog") == "fed"
