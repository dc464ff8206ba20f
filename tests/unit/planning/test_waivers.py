# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Knobs that a run leaves alone: excluded and waived ones, and expired waivers; the real main() of tune."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import knobs_of
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown, terminal

from tests.support import hosts
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of
from tests.support.report import reports

Call = Callable[..., Dict[str, Any]]
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SOMAXCONN = "/proc/sys/net/core/somaxconn"
BACKLOG = "/proc/sys/net/ipv4/tcp_max_syn_backlog"
LATER, PAST = "2999-12-31", "2020-01-31"
WANTED = {"network_stack": {"somaxconn": 8192, "max_syn_backlog": 8192}, "hugepages": {"thp": "never"}}


def waiver(knob: str, expires: str = LATER, reason: str = "measured, see OPS-123") -> Dict[str, str]:
    return {"knob": knob, "reason": reason, "expires": expires}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("nitro"))


def value(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text().strip()


def statuses(result: Dict[str, Any], knob: str) -> List[Tuple[str, str]]:
    return [
        (finding["status"], finding["reason"])
        for finding in result["findings"]
        if f"{finding['concern']}.{finding['knob']}" == knob
    ]


def test_a_waived_knob_is_left_as_it_is_and_reported(host: FakeKernel, call: Call) -> None:
    result = call(tune.main, host, concerns=WANTED, waivers=[waiver("network_stack.somaxconn")])
    assert value(host, SOMAXCONN) == "4096"
    assert value(host, BACKLOG) == "8192"
    ((status, reason),) = statuses(result, "network_stack.somaxconn")
    assert status == "waived"
    assert reason.startswith(f"until {LATER}: measured, see OPS-123; otherwise would_change: ")
    boot_file = (Path(host.root) / "etc/sysctl.d/99-nearmetal-network_stack.conf").read_text()
    assert "net.ipv4.tcp_max_syn_backlog" in boot_file
    assert "somaxconn" not in boot_file
    assert not call(tune.main, host, concerns=WANTED, waivers=[waiver("network_stack.somaxconn")])["changed"]


def test_a_waiver_keeps_what_an_earlier_run_had_set_and_restore_still_takes_it_back(
    host: FakeKernel, call: Call
) -> None:
    call(tune.main, host, concerns=WANTED)
    assert value(host, SOMAXCONN) == "8192"
    changed = {"network_stack": {"somaxconn": 16384, "max_syn_backlog": 8192}}
    call(tune.main, host, concerns=changed, waivers=[waiver("network_stack.somaxconn")])
    assert value(host, SOMAXCONN) == "8192"
    call(restore.main, host)
    assert value(host, SOMAXCONN) == "4096"


def test_an_expired_waiver_is_reported_and_its_knob_managed_again(host: FakeKernel, call: Call) -> None:
    result = call(tune.main, host, concerns=WANTED, waivers=[waiver("network_stack.somaxconn", PAST)])
    assert value(host, SOMAXCONN) == "8192"
    (changed, finding) = statuses(result, "network_stack.somaxconn")
    assert changed[0] == "changed"
    assert finding[0] == "advice"
    assert f"its waiver expired on {PAST} (measured, see OPS-123), so the knob is managed again" in finding[1]


IDLE = "its waiver expired on 2020-01-31 (measured, see OPS-123), and nothing of this run sets the knob"


@pytest.mark.parametrize(
    ("given", "knob", "said"),
    [
        (waiver("network_stack.mtu", PAST), "network_stack.mtu", IDLE),
        (waiver("memory.swappiness", PAST), "tune.waivers", IDLE),
    ],
)
def test_a_waiver_that_is_over_is_reported_where_nothing_of_its_concern_is_planned(
    given: Dict[str, str], knob: str, said: str, host: FakeKernel, call: Call
) -> None:
    result = call(tune.main, host, check=True, concerns=WANTED, waivers=[given, waiver("memory.overcommit")])
    ((status, reason),) = statuses(result, knob)
    assert (status, reason[: len(said)]) == ("advice", said)


def test_each_form_of_a_fleet_s_report_says_above_its_table_which_waivers_are_over(tmp_path: Path, call: Call) -> None:
    over = [waiver("network_stack.somaxconn", PAST), waiver("hugepages.thp"), waiver("memory.swappiness", PAST)]
    given = {"h0": over, "h1": over[:2], "h2": []}
    results = {
        name: call(tune.main, FakeKernel(tmp_path / name, files_of("nitro")), check=True, concerns=WANTED, waivers=some)
        for name, some in given.items()
    }
    report = reports.collector(results).report(reports.RUN)
    said = f"network_stack.somaxconn on 2 hosts (until {PAST}), memory.swappiness on 1 host (until {PAST})"
    head = " ".join("\n".join(terminal.render(report)).partition("┐")[0].split())
    assert f"Expired waivers: {said}" in head
    assert f"Expired waivers: {markdown.escape(said)}" in markdown.render(report).partition("| host")[0]
    assert f"<dt>Expired waivers</dt><dd>{said}</dd>" in html.render(report)
    alone = reports.collector({"h2": results["h2"]}).report(reports.RUN)
    assert "waiver" not in "\n".join(terminal.render(alone))


def test_a_check_can_be_waived(tmp_path: Path, call: Call) -> None:
    old = {"/etc/os-release": 'ID=amzn\nVERSION_ID="2018.03"\n'}
    host = FakeKernel(tmp_path, files_of("nitro", old))
    arguments = {"concerns": {"kernel_check": {}}, "check": True}
    assert statuses(call(tune.main, host, **arguments), "kernel_check.distribution")[0][0] == "advice"
    waived = call(tune.main, host, waivers=[waiver("kernel_check.distribution")], **arguments)
    assert [status for status, _reason in statuses(waived, "kernel_check.distribution")] == ["waived"]


def test_a_waived_refusal_does_not_fail_a_strict_run(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_burstable"))
    arguments = {"concerns": {"smt": {"threads": "disabled"}}, "strict": True}
    assert call(tune.main, host, **arguments)["failed"]
    result = call(tune.main, host, waivers=[waiver("smt.threads")], **arguments)
    assert "failed" not in result
    assert "smt: waived: until" in result["msg"]


FLEET_WIDE = [f"{concern.name}.{knob}" for concern in CONCERNS.values() for knob in knobs_of(concern)]


@pytest.mark.parametrize("name", hosts.names())
def test_a_waiver_of_what_this_host_lacks_is_no_mistake(name: str, tmp_path: Path, call: Call) -> None:
    """The same waivers, in group_vars of all, reach hosts of every class."""
    arguments = {"concerns": {name: {} for name in CONCERNS}, "workload": "low_latency", "check": True}
    host = fresh(tmp_path, name)
    result = call(tune.main, host, waivers=[waiver(knob) for knob in FLEET_WIDE], **arguments)
    assert "failed" not in result, result["msg"]
    assert [finding for finding in result["findings"] if "waiver" in finding["reason"]] == []


def test_the_unit_obeys_the_waiver(host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    call(tune.main, host, concerns=WANTED, waivers=[waiver("network_stack.somaxconn"), waiver("hugepages.thp")])
    assert command.main(["reapply"], host) == 0
    assert value(host, SOMAXCONN) == "4096"
    assert value(host, THP) == "always [madvise] never"
    assert command.main(["status", "--json"], host) == 0, capsys.readouterr().out
    (kept,) = json.loads((Path(host.root) / "var/lib/nearmetal/wanted.json").read_text())["concerns"]["hugepages"][
        "options"
    ]["waivers"]
    assert kept == {"knob": "thp", "reason": "measured, see OPS-123", "expires": LATER}


def test_an_excluded_knob_is_left_out_whoever_asks(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns=WANTED)
    result = call(tune.main, host, concerns=WANTED, exclude=["network_stack.somaxconn"])
    assert value(host, SOMAXCONN) == "4096", "what an earlier run had set is taken back"
    assert value(host, BACKLOG) == "8192"
    assert all(status != "waived" for status, _reason in statuses(result, "network_stack.somaxconn"))
    stored = json.loads((Path(host.root) / "var/lib/nearmetal/wanted.json").read_text())
    assert "somaxconn" not in stored["concerns"]["network_stack"]["options"]


def test_a_workload_without_its_excluded_knobs(host: FakeKernel, call: Call) -> None:
    result = call(tune.main, host, check=True, workload="cache", exclude=["network_irq.rps", "hugepages.thp"])
    knobs = {f"{finding['concern']}.{finding['knob']}" for finding in result["findings"]}
    assert {"network_irq.rps", "hugepages.thp"} & knobs == set()
    assert "network_irq.policy" in knobs


@pytest.mark.parametrize("name", ["nitro", "xen_hvm", "container"])
def test_an_excluded_check_is_not_run(name: str, tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, name)
    checks = ["kernel_check.steal", "kernel_check.kernel", "blkfront_check.persistent_grants"]
    before = call(tune.main, host, check=True, workload="base")["findings"]
    after = call(tune.main, host, check=True, workload="base", exclude=checks)["findings"]
    assert after == [finding for finding in before if f"{finding['concern']}.{finding['knob']}" not in checks]
    assert after != before


ENTRIES = {"block_storage": {"disks": [{"kind": "instance_store", "nomerges": 2, "rq_affinity": 2}]}}
RULES = "etc/udev/rules.d/90-nearmetal-block_storage.rules"


@pytest.mark.parametrize(
    "left_out", [{"exclude": ["block_storage.nomerges"]}, {"waivers": [waiver("block_storage.nomerges")]}]
)
def test_a_knob_that_an_entry_gives_to_single_devices_is_left_alone_at_boot_too(
    left_out: Dict[str, Any], tmp_path: Path, call: Call
) -> None:
    host = fresh(tmp_path, "metal")
    call(tune.main, host, concerns=ENTRIES, **left_out)
    assert command.main(["reapply"], host) == 0
    assert value(host, "/sys/block/nvme1n1/queue/nomerges") == "0"
    assert value(host, "/sys/block/nvme1n1/queue/rq_affinity") == "2"
    assert "rq_affinity" in (tmp_path / RULES).read_text()
    assert "nomerges" not in (tmp_path / RULES).read_text()


def test_a_part_of_an_option_is_excluded_by_the_name_that_its_findings_have(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    wanted = {"network_stack": {"tx_queue": {"length": 5000, "bql": "disabled"}}}
    result = call(tune.main, host, check=True, concerns=wanted, exclude=["network_stack.txqueuelen"])
    assert {action["knob"] for action in result["actions"] if action["where"].startswith("0000:")} == {"bql"}


MODERATION = {"network_stack": {"adaptive_rx": "disabled", "rx_usecs": 0, "tx_usecs": 0}}


def test_an_excluded_knob_may_share_its_table_with_others(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    host.nics.coalesce["ens5"] = [20, 0, 0, 0, 64, 0, 0, 0, 0, 1, *[0] * 12]
    call(tune.main, host, concerns=MODERATION)
    for check in (True, False):
        result = call(tune.main, host, check=check, concerns=MODERATION, exclude=["network_stack.adaptive_rx"])
        assert "failed" not in result
    assert (host.nics.coalesce["ens5"][0], host.nics.coalesce["ens5"][4]) == (0, 0), "what is still asked for stays"
    call(restore.main, host)
    assert host.nics.coalesce["ens5"] == [20, 0, 0, 0, 64, 0, 0, 0, 0, 1, *[0] * 12]


def test_a_waived_knob_that_shares_its_table_is_reported(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    host.nics.coalesce["ens5"] = [20, 0, 0, 0, 64, 0, 0, 0, 0, 1, *[0] * 12]
    result = call(tune.main, host, concerns=MODERATION, waivers=[waiver("network_stack.rx_usecs")])
    assert [status for status, _reason in statuses(result, "network_stack.rx_usecs")] == ["waived"]
    assert (host.nics.coalesce["ens5"][0], host.nics.coalesce["ens5"][4]) == (20, 0)


SENTENCES = [
    (
        {"exclude": ["numa"]},
        "tune_exclude[0] must be concern.knob, such as cpu_power.idle, not 'numa'; its knobs are balancing, ",
    ),
    (
        {"exclude": ["netwrk_stack"]},
        "tune_exclude[0] must be concern.knob, such as cpu_power.idle, not 'netwrk_stack'; concerns are network_stack,",
    ),
    ({"exclude": ["power.idol"]}, "tune_exclude[0]: concern 'power' is unknown; there are "),
    ({"exclude": ["power.idle"]}, "tune_exclude[0] must be concern.knob, not 'power.idle'; is cpu_power.idle meant?"),
    ({"exclude": ["persist_x"]}, "tune_exclude[0] must be concern.knob, such as cpu_power.idle, not 'persist_x'; "),
    ({"only": ["somaxconn"]}, "tune_only[0] must be a concern or concern.knob, not 'somaxconn'; is network_stack."),
    (
        {"exclude": ["numa.persist"]},
        "tune_exclude[0]: numa has no knob 'persist'; it has balancing, zone_reclaim_mode, ",
    ),
    (
        {"exclude": ["kernel_check.minimum_kernel"]},
        "tune_exclude[0]: kernel_check has no knob 'minimum_kernel'; it has kernel, distribution, virtualization, ",
    ),
    ({"waivers": [waiver("idle")]}, "tune_waivers[0].knob must be concern.knob, not 'idle'; is cpu_power.idle meant?"),
    ({"waivers": [waiver("power.idol")]}, "tune_waivers[0].knob: concern 'power' is unknown; there are "),
    (
        {"waivers": [waiver("network_stack.keepalve_time")]},
        "tune_waivers[0].knob: network_stack has no knob 'keepalve_time'; it has keepalive_time, ",
    ),
    ({"waivers": [waiver("kernel_check.maximum_steal_percent")]}, "tune_waivers[0].knob: kernel_check has no knob "),
    (
        {"waivers": [waiver("cpu_power.idle", "soon")]},
        "tune_waivers[0].expires must be the last day of the waiver, such as 2027-01-31, not 'soon'",
    ),
    (
        {"waivers": [waiver("cpu_power.idle", "2027-02-30")]},
        "tune_waivers[0].expires must be the last day of the waiver, such as 2027-01-31, not '2027-02-30'",
    ),
    (
        {"waivers": [waiver("cpu_power.idle", reason=" ")]},
        "tune_waivers[0].reason says why in 1 to 200 characters, for readers of the report",
    ),
    (
        {"waivers": [waiver("cpu_power.idle"), waiver("cpu_power.idle", PAST)]},
        "tune_waivers[1]: cpu_power.idle is waived twice; give one reason and one last day",
    ),
    (
        {"waivers": [waiver("cpu_power.idle")], "exclude": ["cpu_power.idle"]},
        "cpu_power.idle is in tune_exclude, which takes it back, and in tune_waivers, which leaves it as it is",
    ),
]


@pytest.mark.parametrize(("options", "sentence"), SENTENCES, ids=[sentence[:40] for _options, sentence in SENTENCES])
def test_an_error_is_reported_in_one_sentence(
    options: Dict[str, Any], sentence: str, host: FakeKernel, call: Call
) -> None:
    result = call(tune.main, host, check=True, workload="cache", **options)
    assert result["failed"]
    assert result["mistake"], "by which a report knows that nothing was looked at"
    assert result["msg"].startswith(sentence)
    assert "\n" not in result["msg"]
