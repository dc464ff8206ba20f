# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""auto while its programs are down, and a waiver of its choice: main() on a fake host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.files.processes import first, process, together
from tests.support.fresh_host import probe, routed
from tests.support.hosts import files_of, write

Call = Callable[..., Dict[str, Any]]
NGINX = process(70, "nginx", "/usr/sbin/nginx", ports=[80, 443])
REDIS = process(812, "redis-server", "/usr/bin/redis-check-rdb", ports=[6379])


def running(root: Path, *processes: Dict[str, str]) -> FakeKernel:
    host = FakeKernel(root, routed(files_of("nitro", together(first(), *processes))))
    probe(host)
    return host


def choice_findings(result: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [finding for finding in result["findings"] if finding["concern"] == "tune"]


def statuses(result: Dict[str, Any]) -> List[Tuple[str, str]]:
    return [(finding["status"], finding["where"]) for finding in choice_findings(result)]


def value(host: FakeKernel, key: str) -> str:
    return (Path(host.root) / "proc/sys" / key.replace(".", "/")).read_text().strip()


def wanted(host: FakeKernel) -> Dict[str, Any]:
    concerns: Dict[str, Any] = json.loads((Path(host.root) / "var/lib/nearmetal/wanted.json").read_text())["concerns"]
    return concerns


def end(host: FakeKernel, *pids: int) -> None:
    """The processes end."""
    for pid in pids:
        shutil.rmtree(Path(host.root) / f"proc/{pid}")


def start(host: FakeKernel, *processes: Dict[str, str]) -> None:
    write(Path(host.root), together(first(), *processes))


def applied(call: Call, host: FakeKernel, **options: Any) -> Dict[str, Any]:
    return call(tune.main, host, workload="auto", workload_auto="apply", **options)


def test_the_next_run_applies_a_recognized_workload_although_its_program_is_down(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    assert applied(call, host)["workload"] == ["web"]
    end(host, 70)
    audit = call(tune.main, host, check=True, workload="auto", workload_auto="apply")
    result = applied(call, host)
    assert (result["workload"], result["changed"]) == (["web"], False)
    assert choice_findings(audit) == choice_findings(result)
    (finding,) = choice_findings(result)
    assert (finding["status"], finding["where"]) == ("advice", "web")
    assert finding["reason"] == (
        "nginx is not running now; an earlier run recognized web by it, so the workload's values stay: set tune_prune:"
        " true to take them back, or name the workload in tune_workload"
    )
    assert value(host, "net.ipv4.tcp_max_syn_backlog") == "8192"
    start(host, REDIS)
    result = applied(call, host)
    assert result["workload"] == ["web", "in_memory_database"]
    assert statuses(result) == [("ok", "in_memory_database"), ("advice", "web")]
    assert value(host, "net.ipv4.tcp_max_syn_backlog") == "8192"


def test_pruning_takes_back_workloads_of_programs_that_no_longer_run(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = running(tmp_path, NGINX, REDIS)
    original = value(host, "net.ipv4.tcp_max_syn_backlog")
    applied(call, host)
    end(host, 70)
    assert applied(call, host, prune=True)["workload"] == ["in_memory_database"]
    assert value(host, "net.ipv4.tcp_max_syn_backlog") == original
    assert applied(call, host)["workload"] == ["in_memory_database"]
    assert command.main(["status"], host) == 0
    end(host, 812)
    assert applied(call, host, prune=True)["workload"] == ["base"]
    assert set(wanted(host)) == {"clocksource"}


@pytest.mark.parametrize("named", ["base", "web", "in_memory_database"])
def test_naming_a_workload_ends_what_was_recognized(named: str, tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    applied(call, host)
    call(tune.main, host, workload=named)
    assert "tune" not in wanted(host)
    end(host, 70)
    assert applied(call, host)["workload"] == ["base"]


def test_a_run_that_names_no_workload_keeps_what_was_recognized(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    applied(call, host)
    end(host, 70)
    call(tune.main, host, concerns={"hugepages": {"thp": "never"}})
    call(tune.main, host, workload="auto")
    assert applied(call, host)["workload"] == ["web"]
    call(tune.main, host, concerns={"hugepages": {"thp": "never"}}, prune=True)
    assert applied(call, host)["workload"] == ["base"]


def test_restore_forgets_what_was_recognized(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    applied(call, host)
    data = Path(host.root) / "var/lib/nearmetal"
    assert "tune: what auto recognized on this host is forgotten" in call(restore.main, host)["msg"]
    assert not data.exists()
    applied(call, host)
    for name in set(wanted(host)) - {"tune"}:
        assert data.exists()
        call(restore.main, host, concerns=[name])
    assert not data.exists()


def test_an_unknown_program_in_the_wanted_file_is_refused(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    applied(call, host)
    place = Path(host.root) / "var/lib/nearmetal/wanted.json"
    place.write_text(place.read_text().replace('"nginx"', '"; reboot"'))
    result = applied(call, host)
    assert result["failed"]
    assert "wanted.json: ['; reboot'] aren't programs that auto recognizes in this version; name" in result["msg"]
    assert call(tune.main, host, workload="web").get("failed") is None


@pytest.mark.parametrize("remedy", [{"workload": "web"}, {"workload": "auto", "prune": True}], ids=["named", "prune"])
def test_a_damaged_choice_is_repaired_as_its_message_says(remedy: Dict[str, Any], tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    applied(call, host)
    place = Path(host.root) / "var/lib/nearmetal/wanted.json"
    stored = json.loads(place.read_text())
    stored["concerns"]["tune"]["options"] = 7
    place.write_text(json.dumps(stored))
    message = applied(call, host)["msg"]
    assert message.endswith("name the host's workload in tune_workload, or set tune_prune: true"), message
    done = call(tune.main, host, workload_auto="apply", **remedy)
    assert not done.get("failed"), done["msg"]
    assert applied(call, host)["workload"] == ["web"]


WAIVER = {"knob": "tune.workload", "reason": "a proxy, see OPS-7", "expires": "2999-01-31"}


def test_a_waiver_leaves_the_choice_of_auto_as_it_is(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    result = call(tune.main, host, check=True, workload="auto", waivers=[WAIVER])
    assert statuses(result) == [("waived", "web")]
    assert choice_findings(result)[0]["reason"].startswith(
        "until 2999-01-31: a proxy, see OPS-7; otherwise advice: nginx runs"
    )
    applied(call, host)
    start(host, NGINX, REDIS)
    result = applied(call, host, waivers=[WAIVER])
    assert result["workload"] == ["web"]
    assert statuses(result) == [("ok", "web"), ("waived", "in_memory_database")]
    result = applied(call, host, waivers=[{**WAIVER, "expires": "2026-01-31"}])
    assert result["workload"] == ["web", "in_memory_database"]
    assert "its waiver expired on 2026-01-31 (a proxy, see OPS-7)" in choice_findings(result)[-1]["reason"]


def test_an_excluded_choice_reports_nothing_and_applies_base(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    applied(call, host)
    result = applied(call, host, exclude=["tune.workload"])
    assert (result["workload"], choice_findings(result)) == (["base"], [])
    assert "tune" not in wanted(host)
    both = call(tune.main, host, workload="web", exclude=["tune.workload"], waivers=[WAIVER])
    assert "tune.workload is in tune_exclude, which takes it back, and in tune_waivers" in both["msg"]
    assert "tune has no knob 'workloads'" in call(tune.main, host, exclude=["tune.workloads"])["msg"]
