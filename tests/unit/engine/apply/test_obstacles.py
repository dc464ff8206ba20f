# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An obstacle to one concern is only that concern's error: the others are planned and done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import prove, restore, tune

from tests.support.boot_trees import BootHost, debian

Call = Callable[..., Dict[str, Any]]
DROP_IN = "etc/default/grub.d/99-nearmetal.cfg"
SOMAXCONN = "proc/sys/net/core/somaxconn"
EDITED = "/etc/default/grub.d/99-nearmetal.cfg was changed by somebody"


def wanted(tsc: str, somaxconn: int) -> Dict[str, Any]:
    return {"clocksource": {"tsc_reliable": tsc}, "network_stack": {"somaxconn": somaxconn}}


@pytest.fixture
def host(tmp_path: Path, call: Call) -> BootHost:
    """Tuned, and then somebody wrote a line of their own into our drop-in for GRUB."""
    host = debian(tmp_path)
    (tmp_path / SOMAXCONN).write_text("4096\n")
    assert not call(tune.main, host, concerns=wanted("enabled", 8192)).get("failed")
    with (tmp_path / DROP_IN).open("a") as drop_in:
        drop_in.write('GRUB_TIMEOUT="9"\n')
    return host


def value(host: BootHost) -> str:
    return Path(host.root, SOMAXCONN).read_text().strip()


def test_restore_takes_the_other_concerns_back(host: BootHost, call: Call) -> None:
    edited = Path(host.root, DROP_IN).read_text()
    checked = call(restore.main, host, check=True)
    assert value(host) == "8192"
    done = call(restore.main, host)
    for result in (checked, done):
        assert result["failed"]
        assert list(result["errors"]) == ["clocksource"]
        assert EDITED in result["errors"]["clocksource"]
    assert checked["diff"] == done["diff"]
    assert (value(host), Path(host.root, DROP_IN).read_text()) == ("4096", edited)
    Path(host.root, DROP_IN).unlink()
    assert not call(restore.main, host).get("failed"), "the concern in whose way it stood is still known"
    assert not Path(host.root, "var/lib/nearmetal").exists()


def test_tune_does_the_others(host: BootHost, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(tune.main, host, concerns=wanted("kernel", 9999))
    assert list(done["errors"]) == ["clocksource"]
    assert value(host) == "9999"
    capsys.readouterr()
    command(["status"], host)
    shown = capsys.readouterr().out
    assert "Failed in its last run: clocksource" in shown
    assert re.search("needs a reboot +tsc_reliable:", shown), "what the last run wanted that could do it"


def test_a_run_with_rollback_does_not_begin_if_one_concern_cannot(host: BootHost, call: Call) -> None:
    host.written.clear()
    done = call(tune.main, host, concerns=wanted("kernel", 9999), on_failure="rollback")
    assert EDITED in done["errors"]["clocksource"]
    assert "clocksource can't be done" in done["errors"]["network_stack"]
    assert not done["changed"]
    assert (value(host), host.written) == ("8192", [])


def test_prove_keeps_nothing_of_a_tuning_of_which_one_concern_fails(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    files = {"net/ipv4/tcp_slow_start_after_idle": "1\n", "vm/swappiness": "60\n"}
    for name, text in files.items():
        place = tmp_path / "proc/sys" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    concerns = {"network_stack": {"slow_start_after_idle": "disabled"}, "memory": {"swappiness": 5}}
    step = {"run": "r1", "abandon_after": 0, "tune": {"concerns": concerns}}
    begun = call(prove.main, host, step="begin", **step)
    assert not begun.get("failed"), begun
    theirs = tmp_path / "etc/sysctl.d/99-nearmetal-memory.conf"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("# somebody's own\n")
    assert "nearmetal didn't write it" in call(prove.main, host, step="keep", **step)["msg"]
    assert [path.name for path in theirs.parent.iterdir()] == [theirs.name]
    assert not host.exists("/var/lib/nearmetal/wanted.json")
    assert {name: (tmp_path / "proc/sys" / name).read_text() for name in files} == files
    assert not host.exists("/run/nearmetal/prove.json")
