# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""tune with programs: named, unknown, and recognized by auto; the real main() on a fake host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.modules import tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import worth

from tests.support.fake_kernel import FakeKernel
from tests.support.files.processes import first, process, together
from tests.support.fresh_host import probe, routed
from tests.support.hosts import files_of
from tests.support.report import reports

Call = Callable[..., Dict[str, Any]]
ASD = process(70, "asd", "/usr/bin/asd", ports=[3000])
DPKG = {
    "/var/lib/dpkg/status": "Package: bash\nStatus: install ok installed\nVersion: 5.2-1\n\n"
    "Package: aerospike-server-community\nStatus: install ok installed\nVersion: 8.1.0.1-1\n"
}


def running(root: Path, *parts: Dict[str, str]) -> FakeKernel:
    host = FakeKernel(root, routed(files_of("nitro", together(first(), *parts))))
    probe(host)
    return host


def program_findings(result: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [finding for finding in result["findings"] if (finding["concern"], finding["knob"]) == ("tune", "program")]


def swappiness(host: FakeKernel) -> str:
    return (Path(host.root) / "proc/sys/vm/swappiness").read_text().strip()


def test_a_program_is_tuned_named_and_taken_back_when_it_is_named_no_longer(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, DPKG)
    before = swappiness(host)
    result = call(tune.main, host, workload="in_memory_database", program="aerospike")
    assert swappiness(host) == "0"
    (finding,) = program_findings(result)
    assert (finding["status"], finding["where"], finding["now"]) == ("ok", "aerospike", "8.1.0.1")
    assert finding["reason"].startswith(
        "Aerospike 8.1.0.1: its maintainers ask for memory.swappiness 0, memory.max_map_count 262144"
    )
    again = call(tune.main, host, workload="in_memory_database", program="aerospike")
    assert not again["changed"]
    stored = json.loads((tmp_path / "var/lib/nearmetal/wanted.json").read_text())["concerns"]
    assert stored["memory"]["run"] == "tune, workload in_memory_database, program aerospike"
    call(tune.main, host, workload="in_memory_database", program=[])
    assert swappiness(host) == before


def test_the_first_line_of_a_report_names_the_programs_that_count(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, DPKG, ASD)
    named = {"named": ["redis=99", "aerospike"], "advised": "auto", "none": []}
    results = {name: call(tune.main, host, check=True, workload="web", program=given) for name, given in named.items()}
    report = reports.collector(results).report(reports.RUN)
    assert worth.verdict(report).planned.startswith("web on 2 hosts, web and programs redis, aerospike on 1 host; ")
    redis, _aerospike = program_findings(results["named"])
    assert redis["reason"].startswith("Redis 99: its maintainers ask for hugepages.thp never, ")
    assert "network_stack.somaxconn 511, as read on 20" in redis["reason"], "a version of tomorrow may want more"


def test_a_program_lowers_a_limit_and_the_unit_keeps_it_there(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path)
    call(tune.main, host, program="cassandra")
    places = sorted((tmp_path / "sys/block").glob("nvme*/queue/read_ahead_kb"))
    assert {place.read_text().strip() for place in places} == {"4"}
    stored = json.loads((tmp_path / "var/lib/nearmetal/wanted.json").read_text())["concerns"]
    assert stored["block_storage"]["by"]["read_ahead_kb"] == "program"
    assert command.main(["reapply"], host) == 0
    assert {place.read_text().strip() for place in places} == {"4"}


def test_the_users_own_value_beats_the_programs(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path)
    result = call(tune.main, host, program="aerospike", concerns={"memory": {"swappiness": 5}})
    assert swappiness(host) == "5"
    (finding,) = [finding for finding in result["findings"] if finding["knob"] == "swappiness"]
    assert "; you say 5, Aerospike's maintainers say 0: it checks this at its start" in finding["reason"]
    assert finding["reference"] == "Aerospike server, checks at start"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"program": "areospike"}, "program 'areospike' is unknown; there are auto, which"),
        ({"program": "web"}, "program 'web' is unknown, but it is a workload: set tune_workload: web"),
        ({"program": "aerospike=new"}, "write its version as numbers, such as aerospike=8.0"),
        ({"program": ["aerospike", "aerospike=8.0"]}, "program names aerospike twice: name it once"),
        ({"program": "auto,aerospike"}, "leave out auto, or the other programs"),
        (
            {"workload": "aerospike"},
            "aerospike is a program, and in_memory_database is for such programs: set tune_workload: in_memory_data",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    options: Dict[str, Any], sentence: str, tmp_path: Path, call: Call
) -> None:
    result = call(tune.main, running(tmp_path), **options)
    assert result["failed"]
    assert sentence in result["msg"]


def test_auto_advises_and_sets_nothing(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, ASD, DPKG)
    before = swappiness(host)
    (finding,) = program_findings(call(tune.main, host, workload="base", program="auto"))
    assert finding["status"] == "advice"
    assert finding["reason"] == (
        "Aerospike 8.1.0.1 runs on this host; to apply what its maintainers ask for, set tune_program:"
        " aerospike=8.1.0.1, or tune_workload_auto: apply"
    )
    assert swappiness(host) == before


@pytest.mark.parametrize(
    ("line", "ports", "names"),
    [
        (["java", "-XX:+UseZGC", "kafka.Kafka"], [9092], ["kafka", "zgc"]),
        (["java", "-XX:+UseShenandoahGC", "-jar", "x.jar"], [8080], ["java", "shenandoah"]),
        (["java", "-XX:+UseG1GC", "-XX:-UseZGC", "kafka.Kafka"], [9092], ["kafka"]),
        (["java", "-XX:+UseZGC", "kafka.tools.ConsoleConsumer"], [], []),
    ],
)
def test_auto_recognizes_javas_collector_by_its_option(
    line: List[str], ports: List[int], names: List[str], tmp_path: Path, call: Call
) -> None:
    java = process(70, "java", "/usr/lib/jvm/bin/java", line, ports)
    found = program_findings(call(tune.main, running(tmp_path, java), check=True, program="auto"))
    assert [finding["where"] for finding in found if finding["where"]] == names


def test_applied_programs_hold_while_they_are_down_until_a_run_prunes(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, ASD)
    before = swappiness(host)
    auto = {"workload": "base", "program": "auto", "workload_auto": "apply"}
    call(tune.main, host, **auto)
    assert swappiness(host) == "0"
    for name in ("comm", "exe"):
        (tmp_path / "proc/70" / name).unlink()
    (finding,) = program_findings(call(tune.main, host, **auto))
    assert (finding["status"], swappiness(host)) == ("advice", "0")
    assert "isn't running now, and what an earlier run applied stays" in finding["reason"]
    (finding,) = program_findings(call(tune.main, host, prune=True, **auto))
    assert (finding["reason"], swappiness(host)) == (
        "none of 2 processes is a program whose maintainers' wishes are known",
        before,
    )


def test_a_program_in_a_container_has_not_the_version_of_a_package(tmp_path: Path, call: Call) -> None:
    inside = process(70, "asd", "/usr/bin/asd", ports=[3000], pids=7, net=8)
    (finding,) = program_findings(call(tune.main, running(tmp_path, inside, DPKG), check=True, program="auto"))
    assert finding["now"] is None


def test_the_choice_of_programs_can_be_excluded_and_waived(tmp_path: Path, call: Call) -> None:
    host = running(tmp_path, ASD)
    options = {"check": True, "workload": "base", "program": "auto"}
    assert not program_findings(call(tune.main, host, exclude=["tune.program"], **options))
    waiver = {"knob": "tune.program", "reason": "a test of OPS-7", "expires": "2999-01-31"}
    (finding,) = program_findings(call(tune.main, host, waivers=[waiver], **options))
    assert finding["status"] == "waived"
