# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""tune with several workloads, and with auto: the real main() on a fake host, and the role by ansible-playbook."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.modules import capture, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.files.processes import first, process, together
from tests.support.fresh_host import probe, routed
from tests.support.hosts import files_of, write
from tests.support.simulated import simulate

Call = Callable[..., Dict[str, Any]]
PROJECT = Path(__file__).resolve().parents[3]
NGINX = process(70, "nginx", "/usr/sbin/nginx", ports=[80, 443])
REDIS = process(812, "redis-server", "/usr/bin/redis-check-rdb", ports=[6379])
BOOT = {"/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n"}
SECOND_BOOT = "22222222-2222-3333-4444-555555555555"
TOOL = process(900, "java", "/usr/lib/jvm/bin/java", ["java", "-jar", "/tmp/build.jar", "--password=hunter2"])


def running(root: Path, *processes: Dict[str, str]) -> FakeKernel:
    host = FakeKernel(root, routed(files_of("nitro", {**together(first(), *processes), **BOOT})))
    probe(host)
    return host


def choice_findings(result: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [finding for finding in result["findings"] if finding["concern"] == "tune"]


def value(host: FakeKernel, key: str) -> str:
    return (Path(host.root) / "proc/sys" / key.replace(".", "/")).read_text().strip()


def wanted(host: FakeKernel) -> Dict[str, Any]:
    concerns: Dict[str, Any] = json.loads((Path(host.root) / "var/lib/nearmetal/wanted.json").read_text())["concerns"]
    return concerns


@pytest.mark.parametrize("given", ["web", ["web"]])
def test_a_word_is_a_list_of_one(given: Any, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, running(tmp_path), check=True, workload=given)
    assert result["workload"] == ["web"]
    assert choice_findings(result) == []


@pytest.mark.parametrize("given", ["web, cache", ["web", "cache"]])
def test_several_are_tuned_together_and_all_are_named(
    given: Any, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = running(tmp_path)
    result = call(tune.main, host, workload=given)
    assert result["workload"] == ["web", "cache"]
    assert value(host, "net.ipv4.ip_local_port_range").split() == ["10240", "65535"], "of web"
    assert value(host, "net.core.busy_poll") == "50", "of cache"
    assert wanted(host)["network_stack"]["run"] == "tune, workloads web, cache"
    assert call(tune.main, host, workload=given)["changed"] is False
    assert command.main(["status"], host) == 0
    assert "tune, workloads web, cache" in capsys.readouterr().out


def test_a_contradiction_is_advice_and_the_later_value_is_set(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path)
    result = call(tune.main, host, workload=["web", "in_memory_database"])
    advice = [finding for finding in result["findings"] if finding["knob"] == "thp" and finding["status"] == "advice"]
    assert [finding["reason"][:60] for finding in advice] == [
        "web wants madvise, in_memory_database wants never: never is "
    ]
    thp = Path(host.root) / "sys/kernel/mm/transparent_hugepage/enabled"
    assert "[never]" in thp.read_text()


@pytest.mark.parametrize(("last_day", "said_again"), [("2999-01-31", False), ("2026-01-31", True)])
def test_a_contradiction_is_silent_while_a_waiver_of_its_knob_holds(
    last_day: str, said_again: bool, tmp_path: Path, call: Call
) -> None:
    waiver = {"knob": "hugepages.thp", "reason": "measured", "expires": last_day}
    result = call(tune.main, running(tmp_path), check=True, workload=["web", "in_memory_database"], waivers=[waiver])
    reasons = [finding["reason"] for finding in result["findings"] if finding["knob"] == "thp"]
    assert any("comes last" in reason for reason in reasons) is said_again


ALONE = "workload auto can't be combined with other workloads, because it recognizes them by what runs on the host"
WRONG = [
    ([], "tune_workload is an empty list: name one, such as base, or leave it out"),
    ([""], "tune_workload is empty: name one, such as base, or leave it out"),
    (["web redis"], "tune_workload is 'web redis': separate several names by commas"),
    (["web", "wbe"], "sap_hana; is web meant?"),
    (["Web"], "sap_hana; is web meant?"),
    (["in-memory-database"], "is in_memory_database meant?"),
    (["Redis"], "redis is a program, and in_memory_database is for such programs: set tune_workload:"),
    (["web", "cache", "web"], "workload names web twice: name it once"),
    (["auto", "web"], f"{ALONE}: leave out auto, or leave out web"),
    ("cache,auto,web", f"{ALONE}: leave out auto, or leave out cache and web"),
    (["auto", "wbe"], "workload 'wbe' is unknown"),
    ("", "tune_workload is empty"),
    ([["web"]], "tune.workload[0] must be a word, not ['web']"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG, ids=[json.dumps(given) for given, _sentence in WRONG])
def test_names_that_cannot_be_meant_are_refused_in_a_sentence(
    given: Any, sentence: str, tmp_path: Path, call: Call
) -> None:
    result = call(tune.main, running(tmp_path), workload=given)
    assert result["failed"]
    assert sentence in result["msg"]


def test_auto_beside_a_playbook_of_a_workload_is_refused(tmp_path: Path, call: Call) -> None:
    spelled_out = {"hugepages": {"thp": "never"}}
    result = call(tune.main, running(tmp_path), workload="auto", workload_concerns=spelled_out)
    assert "workload_concerns spells one out: use one of the two" in result["msg"]


# names beside the playbook in_memory_database, beginning and end of the refusal
BESIDE = [
    (["web", "cache"], "workloads web, cache are named", "run the playbook nearmetal.ec2.tune for web, cache"),
    (["cache"], "workload cache is named", "run the playbook nearmetal.ec2.tune for cache"),
    (["base"], "workload base is named (the default of tune_workload)", "run the playbook nearmetal.ec2.tune for base"),
]


@pytest.mark.parametrize(("given", "begins", "ends"), BESIDE)
def test_other_workloads_beside_a_playbook_of_a_workload_are_refused(
    given: List[str], begins: str, ends: str, tmp_path: Path, call: Call
) -> None:
    spelled_out = {"workload_concerns": {"hugepages": {"thp": "never"}}, "workload_concerns_of": "in_memory_database"}
    result = call(tune.main, running(tmp_path), workload=given, **spelled_out)
    assert result["failed"]
    assert result["msg"] == (
        f"{begins}, but workload_concerns spells out in_memory_database and takes precedence: {ends}, or"
        " set tune_workload: in_memory_database"
    )
    assert call(tune.main, running(tmp_path), check=True, workload=["in_memory_database"], **spelled_out)["changed"]


def test_with_spelled_out_concerns_one_workload_is_a_label_and_several_are_refused(tmp_path: Path, call: Call) -> None:
    spelled_out = {"hugepages": {"thp": "never"}}
    result = call(tune.main, running(tmp_path), workload=["web", "cache"], workload_concerns=spelled_out)
    assert result["msg"].startswith(
        "workloads web, cache are named, but workload_concerns spells out another and takes precedence"
    )
    assert call(tune.main, running(tmp_path), check=True, workload=["web"], workload_concerns=spelled_out)["changed"]


def test_auto_reports_the_recognized_workloads_and_applies_only_base(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX, REDIS, TOOL)
    result = call(tune.main, host, workload="auto")
    assert result["workload"] == ["base"]
    assert value(host, "net.core.somaxconn") == "4096"
    assert [
        (finding["status"], finding["where"], finding["now"], finding["wanted"]) for finding in choice_findings(result)
    ] == [
        ("advice", "web", "nginx", "web"),
        ("advice", "in_memory_database", "redis-server", "in_memory_database"),
    ]
    assert choice_findings(result)[0]["reason"] == (
        "nginx runs on this host (1 process, ports 80, 443): it answers or passes on many connections; web is for that;"
        " to apply all 2, set tune_workload: [web, in_memory_database], or tune_workload_auto: apply"
    )
    assert set(wanted(host)) == {"clocksource"}
    assert wanted(host)["clocksource"]["run"] == "tune, auto: workload base"


def test_auto_with_apply_uses_the_recognized_workloads(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX, REDIS, TOOL)
    result = call(tune.main, host, workload="auto", workload_auto="apply")
    assert result["workload"] == ["web", "in_memory_database"]
    assert {finding["status"] for finding in choice_findings(result)} == {"ok"}
    assert value(host, "net.ipv4.tcp_max_syn_backlog") == "8192"
    assert wanted(host)["network_stack"]["run"] == "tune, auto: workloads web, in_memory_database"


def test_applied_workloads_hold_when_a_program_is_down(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, NGINX)
    call(tune.main, host, workload="auto", workload_auto="apply")
    kept = (Path(host.root) / "var/lib/nearmetal/wanted.json").read_bytes()
    host.reboot(SECOND_BOOT, routed(files_of("nitro", {**first(), **BOOT})))
    probe(host)
    assert not (Path(host.root) / "proc/70").exists()
    assert command.main(["reapply"], host) == 0
    assert (Path(host.root) / "var/lib/nearmetal/wanted.json").read_bytes() == kept
    assert value(host, "net.ipv4.tcp_max_syn_backlog") == "8192"


def test_a_program_in_a_container_is_reported_as_such(tmp_path: Path, call: Call) -> None:
    inside = process(812, "redis-server", "/usr/local/bin/redis-server", ports=[6379], pids=7, net=8)
    (finding,) = choice_findings(call(tune.main, running(tmp_path, inside), check=True, workload="auto"))
    assert finding["reason"].startswith("redis-server runs on this host (1 process, in a container, port 6379): ")


def test_if_nothing_is_recognized_the_run_says_so_and_base_applies(tmp_path: Path, call: Call) -> None:
    result = call(tune.main, running(tmp_path, TOOL), workload="auto", workload_auto="apply")
    assert result["workload"] == ["base"]
    (finding,) = choice_findings(result)
    assert finding["status"] == "advice"
    assert finding["reason"].startswith("none of 2 processes is a program that auto recognizes: base applies; name")


def test_a_capture_without_processes_is_not_reported_as_running_nothing(
    tmp_path: Path, call: Call, capsys: Any
) -> None:
    found = call(capture.main, running(tmp_path / "root", NGINX))["capture"]
    for part in ("files", "links"):
        found[part] = {path: text for path, text in found[part].items() if not path.startswith(("/proc/1", "/proc/7"))}
    found["folders"] = [path for path in found["folders"] if not path.startswith(("/proc/1", "/proc/7"))]
    (tmp_path / "host.json").write_text(json.dumps(found))
    capsys.readouterr()
    assert command.main(["plan", "--from", str(tmp_path / "host.json"), "--workload", "auto", "--json"]) == 0
    (finding,) = choice_findings(json.loads(capsys.readouterr().out))
    assert finding["reason"].startswith(
        "no process can be seen, as in a capture of an earlier nearmetal: base applies; "
    )


def test_a_capture_contains_programs_and_nothing_else_of_processes(tmp_path: Path, call: Call, capsys: Any) -> None:
    shell = process(901, "hunter2", "/bin/bash", ["bash", "-c", "hunter2"], ports=[2222])
    host = running(tmp_path / "root", NGINX, REDIS, TOOL, shell)
    found = call(capture.main, host)["capture"]
    text = json.dumps(found)
    assert "hunter2" not in text
    assert "FE071F0A" not in text
    assert not [path for path in {**found["files"], **found["links"]} if path.startswith(("/proc/901", "/proc/1/c"))]
    (tmp_path / "host.json").write_text(text)
    capsys.readouterr()
    assert command.main(["plan", "--from", str(tmp_path / "host.json"), "--workload", "auto", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert choice_findings(again) == choice_findings(call(tune.main, host, check=True, workload="auto"))
    assert command.main(["plan", "--from", str(tmp_path / "host.json"), "--workload", "web,cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workload"] == ["web", "cache"]


def play(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(PROJECT / ".ansible/collections")
    return subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.json", *words],
        cwd=folder,
        env={**environment, "ANSIBLE_STDOUT_CALLBACK": "nearmetal.ec2.fleet"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_role_takes_lists_and_auto_and_the_report_names_all(tmp_path: Path) -> None:
    hosts = {
        "listed": {**simulate(tmp_path / "listed", "nitro"), "tune_workload": ["web", "cache"]},
        "tagged": {**simulate(tmp_path / "tagged", "nitro"), "tune_workload": "web,cache"},
        "seen": {
            **simulate(tmp_path / "seen", "nitro"),
            "tune_workload": "auto",
            "tune_workload_auto": "apply",
        },
        "typed": {**simulate(tmp_path / "typed", "xen_hvm"), "tune_workload": "web,cache", "instance_type": "t2.large"},
        "typed_twice": {
            **simulate(tmp_path / "typed_twice", "xen_hvm"),
            "tune_workload": "web,cache",
            "instance_type": "t2.large",
            "tune_instance_type": "m4.10xlarge",
        },
    }
    write(tmp_path / "seen/root", together(first(), NGINX))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    audited = play(tmp_path, "nearmetal.ec2.audit")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    report = json.loads((tmp_path / "nearmetal-report/report.json").read_text())
    named = {host["name"]: host["workload"] for host in report["hosts"]}
    assert named == {name: "web" if name == "seen" else "web, cache" for name in hosts}
    tuned = play(tmp_path, "nearmetal.ec2.tune", "--diff", "-e", "tune_serial=100%")
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    roots = [tmp_path / name / "root/proc/sys/net" for name in hosts]
    assert [(root / "ipv4/tcp_max_syn_backlog").read_text().strip() for root in roots] == ["8192"] * 5
    polls = {name: (root / "core/busy_poll").read_text().strip() for name, root in zip(hosts, roots)}
    # The inventory's type is burstable; tune_instance_type wins over it.
    assert polls == {"listed": "50", "tagged": "50", "seen": "0", "typed": "0", "typed_twice": "50"}


def test_a_playbook_of_a_workload_refuses_another_workload(tmp_path: Path) -> None:
    hosts = {"host": simulate(tmp_path / "host", "nitro")}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    done = play(tmp_path, "nearmetal.ec2.web", "-e", "tune_workload=cache")
    assert done.returncode != 0
    refusal = "workload cache is named, but workload_concerns spells out web and takes precedence: run the playbook"
    assert f"{refusal} nearmetal.ec2.tune for cache" in " ".join(done.stdout.split())


def test_after_a_reboot_a_run_applies_the_workloads_recognized_before(tmp_path: Path) -> None:
    """The programs of the host may not be up yet when Ansible reaches it again."""
    host = {
        **simulate(tmp_path / "seen", "nitro"),
        "tune_workload": "auto",
        "tune_workload_auto": "apply",
        "tune_prune": True,
        "tune_result": {"reboot_reasons": [], "reboot_required": False},
    }
    write(tmp_path / "seen/root", together(first(), NGINX))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"seen": host}}}))
    tuned = play(tmp_path, "nearmetal.ec2.tune")
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    shutil.rmtree(tmp_path / "seen/root/proc/70")
    after = {"ansible.builtin.import_role": {"name": "nearmetal.ec2.tune", "tasks_from": "reboot.yml"}}
    (tmp_path / "after.json").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [after]}]))
    done = play(tmp_path, "after.json", "--start-at-task", "nearmetal.ec2.tune : Plan, and tune except in check mode")
    assert done.returncode == 0, done.stdout + done.stderr
    backlog = tmp_path / "seen/root/proc/sys/net/ipv4/tcp_max_syn_backlog"
    assert backlog.read_text().strip() == "8192"
