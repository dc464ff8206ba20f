# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that random lives of hosts found, each as the shortest life that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.sequences.life import Life, lived
from tests.support.sequences.wanted import Step
from tests.support.sequences.world import World


def tune(**concerns: Any) -> Step:
    return Step("tune", {"prune": False, "confirm_within": 0, "concerns": concerns})


def failing(step: Step, at: int, kind: str = "kill", length: int = 1, after: bool = False, reads: bool = False) -> Step:
    return Step(step.name, step.given, {"kind": kind, "at": at, "length": length, "after": after, "reads": reads})


@pytest.mark.parametrize("prune", [True, False])
def test_interrupts_are_placed_by_the_siblings_of_cpus_that_the_same_run_brings_back(
    prune: bool, tmp_path: Path
) -> None:
    """The siblings of a CPU that is offline can't be read, so the plan took each of them for a core of its own."""
    host = World(tmp_path, "metal").host
    placed = {"network_irq": {"policy": "spread", "xps": "auto"}}
    for concerns in (
        {**placed, "smt": {"threads": "disabled"}},
        {**placed, "smt": {} if prune else {"threads": "enabled"}},
    ):
        given = {name: options for name, options in concerns.items() if options}

        def ask(known: Any, given: Any = given) -> Any:
            return tune_requests([], given, {}, known, prune=prune)

        done = run(host, ask)
        assert [outcome.error for outcome in done.outcomes if outcome.error] == []
    assert not [action for outcome in plan_run(host, ask).outcomes for action in outcome.plan.actions]


ARGUMENT = tune(block_storage={"io_timeout": "1200000", "method": "boot"})  # on hosts of each boot loader


@pytest.mark.parametrize("at", range(1, 41))
def test_a_run_that_dies_while_it_writes_a_file_leaves_no_copy(at: int, tmp_path: Path) -> None:
    persisted = tune(network_stack={"somaxconn": 8192}, clocksource={"source": "auto"})
    assert lived(tmp_path, "nitro_burstable", [failing(persisted, at)]) == ""


@pytest.mark.parametrize("at", range(1, 41))
def test_a_file_that_can_neither_be_finished_nor_removed_goes_with_the_next_run(at: int, tmp_path: Path) -> None:
    persisted = tune(network_stack={"somaxconn": 8192}, hugepages={"thp": "never"})
    assert lived(tmp_path, "xen_hvm", [failing(persisted, at, "EROFS", length=3)]) == ""


@pytest.mark.parametrize("at", range(1, 41))
def test_kernel_arguments_that_were_half_set_leave_no_copy_of_a_boot_entry(at: int, tmp_path: Path) -> None:
    assert lived(tmp_path, "metal_amd", [failing(ARGUMENT, at)]) == ""
    assert lived(tmp_path, "metal_amd", [failing(ARGUMENT, at, "EROFS")]) == ""


@pytest.mark.parametrize("at", range(16, 24))
def test_a_run_that_fails_on_a_mount_which_an_earlier_run_left_half_made_says_so(at: int, tmp_path: Path) -> None:
    mounted = tune(hugepages={"mount": {"path": "/srv/huge-pages"}})
    for_group = tune(hugepages={"mount": {"path": "/srv/huge-pages"}, "group": "1001"})
    life = [failing(mounted, at, "ENOSPC", length=2), failing(for_group, at, after=True), failing(mounted, at, "EIO")]
    assert lived(tmp_path, "nitro_old_kernel", life) == ""


def test_a_value_that_the_operators_own_rule_sets_at_boot_waits_for_the_boot_that_follows_it_alone(
    tmp_path: Path,
) -> None:
    """Restore assumed that the disk has the kernel's choice without nearmetal."""
    their_rule = Step("their_file", {"draw": 0.99, "other": 0.0})
    life = [their_rule, tune(block_storage={"read_ahead_kb": 256}), Step("reboot", {"unit": False})]
    assert lived(tmp_path, "metal_amd", life) == ""


def test_a_disk_with_a_value_of_its_own_goes_back_where_the_rule_for_its_kind_set_another_at_boot(
    tmp_path: Path,
) -> None:
    """Restore took our rule's value for a foreign one: the run before the boot had set another value."""
    life = [tune(block_storage={"nomerges": 2, "disks": [{"mount": "/", "nomerges": 1}]})]
    assert lived(tmp_path, "graviton_metal", [*life, Step("reboot", {"unit": False})]) == ""


def test_a_preference_that_the_governor_does_not_take_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    """The first run found the preference as wanted, then the governor changed it: a second run would have failed."""
    wanted = tune(cpu_power={"governor": "performance", "energy_performance_preference": "balance_performance"})
    assert lived(tmp_path, "metal", [wanted]) == ""
    world = World(tmp_path / "other", "metal")
    before = world.snapshot()
    with pytest.raises(
        NearmetalError, match="under the governor performance the kernel takes no preference but performance"
    ):
        run(world.host, lambda _known: tune_requests([], wanted.given["concerns"], {}))
    assert world.snapshot() == before


@pytest.mark.parametrize("more", [{"rfs": "auto"}, {"rfs": "auto", "policy": "kernel"}], ids=["dropped", "kernel"])
@pytest.mark.parametrize("name", ["xen_hvm", "xen_hvm_4_sockets", "nitro", "nitro_big"])
def test_steering_that_is_asked_for_when_a_policy_is_not_is_planned_for_where_the_interrupts_go_then(
    name: str, more: Any, tmp_path: Path
) -> None:
    """It was planned for the CPUs from which the same run moved the interrupts away."""
    life = [tune(network_irq={"policy": "dedicated", "irq_cpus": "0-1"}), Step("confirm", {})]
    assert lived(tmp_path, name, [*life, tune(network_irq=more)]) == ""


def test_a_foreign_value_whose_original_only_a_boot_shows_is_named(tmp_path: Path) -> None:
    """Restore left it silently: our file had set the value with which the host booted, with another kernel."""
    world = World(tmp_path / "host", "nitro_burstable")
    journal = Path(world.host.root) / "var/lib/nearmetal/journal.json"
    thp = "/sys/kernel/mm/transparent_hugepage/enabled"

    def tuned(value: str) -> None:
        run(world.host, lambda _known: tune_requests([], {"hugepages": {"thp": value}}, {}))

    tuned("never")
    journal.write_text(journal.read_text().replace('"machine": "', '"machine": "1.'))
    world.reboot()
    tuned("madvise")
    assert world.somebody(thp, "always")
    done = run(world.host, lambda known: restore_requests(None, known))
    said = [finding.reason for outcome in done.outcomes for finding in outcome.plan.findings if finding.knob == "thp"]
    assert any("to always after nearmetal did: left alone" in reason for reason in said), said


WAYS_BACK = [*((at, False) for at in range(29, 47, 3)), *((at, True) for at in range(29, 45))]


@pytest.mark.parametrize(("at", "reads"), WAYS_BACK)
@pytest.mark.parametrize("name", ["metal_amd", "nitro", "nitro_old_kernel"])
def test_kernel_arguments_whose_way_back_failed_too_are_not_forgotten(
    name: str, at: int, reads: bool, tmp_path: Path
) -> None:
    """The record was put back although the boot loader's files weren't, so the argument stayed forever."""
    assert lived(tmp_path, name, [failing(ARGUMENT, at, "EIO", length=3, reads=reads)]) == ""


@pytest.mark.parametrize("at", range(28, 49))
def test_kernel_arguments_beside_which_an_old_file_stays_are_not_forgotten(at: int, tmp_path: Path) -> None:
    assert lived(tmp_path, "nitro_old_kernel", [failing(ARGUMENT, at, "EIO")]) == ""


@pytest.mark.parametrize("at", [22, 25, 28])
def test_a_number_of_requests_that_a_udev_rule_changed_at_boot_is_settled_by_restore(at: int, tmp_path: Path) -> None:
    """The run that wrote the rule was killed, so restore took the rule's value for the original one."""
    scheduled = tune(block_storage={"scheduler": "mq-deadline"})
    assert lived(tmp_path, "metal", [failing(scheduled, at), Step("reboot", {"unit": False})]) == ""


def test_a_number_of_requests_set_only_by_our_rule_goes_back_with_the_scheduler(tmp_path: Path) -> None:
    """The run that dropped the rule forgot the value of the disk that it had just stored."""
    life = [tune(block_storage={"nr_requests": 64}), tune(block_storage={"scheduler": "none"})]
    assert lived(tmp_path, "xen_hvm", life) == ""


def test_the_kernel_may_go_on_to_offer_a_scheduler_that_it_loaded_for_our_rule(tmp_path: Path) -> None:
    """The rule of all disks gives it to a disk for which the next rule chooses another."""
    disks = [{"mount": "/", "scheduler": "mq-deadline"}]
    loaded = tune(block_storage={"scheduler": "kyber", "disks": disks})
    assert lived(tmp_path, "metal_amd", [loaded, Step("reboot", {"unit": False})]) == ""


POWER = {"governor": "powersave", "method": "runtime"}
PREFERENCE = tune(cpu_power={**POWER, "energy_performance_preference": "power"})
SINGLE_THREADS = tune(smt={"threads": "disabled", "allow_unverified": True}, cpu_power=POWER)


@pytest.mark.parametrize("pruned", [False, True], ids=["restored", "pruned"])
def test_preferences_of_cpus_that_smt_took_offline_go_back_in_one_restore(pruned: bool, tmp_path: Path) -> None:
    """The preferences were looked at before the CPUs came back."""
    clock = {"prune": True, "confirm_within": 0, "concerns": {"clocksource": {"source": "auto"}}}
    last = [Step("tune", clock)] if pruned else []
    assert lived(tmp_path, "metal", [PREFERENCE, SINGLE_THREADS, *last]) == ""


NETWORK = {"network_irq": {"queues": "2", "allow_disruptive": True}}
CONFIRMED_LATER = Step("tune", {"prune": False, "confirm_within": 120, "concerns": NETWORK})


@pytest.mark.parametrize("at", [9, 10, 12, 19])
def test_a_run_that_fails_while_it_arms_the_dead_man_leaves_no_file_of_the_timer(at: int, tmp_path: Path) -> None:
    for fault in (failing(CONFIRMED_LATER, at), failing(CONFIRMED_LATER, at, "ENOSPC", length=1000, after=True)):
        assert lived(tmp_path, "nitro_big", [fault]) == ""


def test_a_wanted_value_that_only_a_restore_would_leave_is_set(tmp_path: Path) -> None:
    """The earlier run's MTU wasn't taken back, but the run reported the original MTU as set."""
    world = World(tmp_path / "host", "xen_pv")
    mtu = Path(world.host.root) / "sys/class/net/eth0/mtu"
    for options in ({"mtu": 1500, "allow_disruptive": True}, {"mtu": 9001}):
        requests = tune_requests([], {"network_stack": options}, {})
        [outcome, *_others] = run(world.host, lambda _known, given=requests: given).outcomes
        said = [
            (finding_of_plan.status, finding_of_plan.now, finding_of_plan.wanted)
            for finding_of_plan in outcome.plan.findings
            if finding_of_plan.knob == "mtu"
        ]
        assert ("would_change", 10501 - options["mtu"], options["mtu"]) in said
        assert "ok" not in [status for status, _now, _wanted in said]
        assert mtu.read_text() == f"{options['mtu']}\n"
    assert world.journal() is None or "network.mtu" not in str(world.journal())


def test_a_refused_value_is_reported_beside_the_hosts_current_value(tmp_path: Path) -> None:
    """It was reported beside the value to which the same run restored the place."""
    world = World(tmp_path / "host", "xen_pv")
    shorter, refused = {"mtu": 1500, "allow_disruptive": True}, {"mtu": 1400}
    run(world.host, lambda _known: tune_requests([], {"network_stack": shorter}, {}))
    [outcome, *_others] = plan_run(
        world.host, lambda _known: tune_requests([], {"network_stack": refused}, {})
    ).outcomes
    [finding] = [finding_of_plan for finding_of_plan in outcome.plan.findings if finding_of_plan.status == "refused"]
    assert (finding.knob, finding.now, finding.wanted) == ("mtu", 1500, 1400)


@pytest.mark.parametrize("at", range(12, 22))
def test_interrupts_of_queues_that_a_run_made_and_took_back_go_back_with_the_number_of_queues(
    at: int, tmp_path: Path
) -> None:
    fewer = tune(network_irq={"queues": "4", "allow_disruptive": True, "persist": False})
    spread = tune(network_irq={"queues": "8", "policy": "spread", "allow_disruptive": True, "persist": False})
    life = [fewer, failing(spread, at, "EROFS", length=3, after=True)]
    assert lived(tmp_path, "graviton_metal", life) == ""


@pytest.mark.parametrize("at", [6, 9, 13])
def test_interrupts_that_the_restore_of_rings_brings_back_leave_no_entry(at: int, tmp_path: Path) -> None:
    spread = tune(network_irq={"policy": "spread", "persist": False})
    rings = {"rx_ring": "512", "rmem_max": 16777216, "allow_disruptive": True, "persist": False}
    assert lived(tmp_path, "nitro_big", [spread, failing(tune(network_stack=rings), at, "ENOSPC", length=1000)]) == ""


def test_what_a_boot_brought_back_is_not_set_for_the_cpus_that_restore_brings_online(tmp_path: Path) -> None:
    """Restore wrote the governors of the boot before for these CPUs, and kept the entry with no original."""
    world = World(tmp_path / "host", "metal")
    life = Life(world)
    files = sorted(Path(world.host.root).glob("sys/devices/system/cpu/cpufreq/policy*/scaling_governor"))
    by_the_kernel = [path.read_text() for path in files]
    for path in files:
        path.write_text("performance\n")  # somebody's, which the boot below ends
    for step in (
        tune(cpu_power={"governor": "powersave"}),
        tune(smt={"threads": "disabled"}),
        Step("reboot", {"unit": False}),
    ):
        life.do(step)
    life.end()
    assert [path.read_text() for path in files] == by_the_kernel


def test_interrupts_of_a_run_that_was_killed_before_a_boot_do_not_become_those_of_another_concern(
    tmp_path: Path,
) -> None:
    """Rings that a later run set took the entry over as their own concern's: its next run undid somebody's write."""
    killed = failing(tune(network_irq={"policy": "spread", "irq_cpus": "0-1"}), 8, after=True)
    somebody = Step("somebody", {"draw": 0.011495757664310102, "other": 0.9906362180732374})
    rings = tune(network_stack={"tx_ring": "max", "allow_disruptive": True})
    pause = Step("plug", {})  # a second run is tried after each other step
    life = [pause, killed, Step("reboot", {"unit": False}), somebody, rings]
    assert lived(tmp_path, "xen_hvm_4_sockets", life) == ""


@pytest.mark.parametrize("at", [10, 12, 14, 16])
def test_a_value_that_an_interrupted_run_of_another_concern_may_have_changed_stays_wanted(
    at: int, tmp_path: Path
) -> None:
    """Huge pages would have raised it, too; their next run took it back, although memory still wanted it."""
    world = World(tmp_path / "host", "xen_hvm")
    life = Life(world)
    life.do(tune(memory={"min_free_kbytes": 131072}))
    life.do(failing(tune(hugepages={"thp": "never", "group": "1001"}), at, "EIO", length=1000, after=True))
    minimum = Path(world.host.root) / "proc/sys/vm/min_free_kbytes"
    assert minimum.read_text() == "131072\n"
    done = run(world.host, lambda known: restore_requests(["hugepages"], known))
    assert not [outcome.error for outcome in done.outcomes if outcome.error]
    assert minimum.read_text() == "131072\n"
    life.end()


@pytest.mark.parametrize("at", [8, 24, 38])
def test_preferences_that_another_governor_fixes_after_a_run_that_failed_go_back_with_it(
    at: int, tmp_path: Path
) -> None:
    preference = {"governor": "powersave", "energy_performance_preference": "performance", "idle": "c1"}
    first = failing(tune(cpu_power=preference), at, "EIO", length=1000, after=True)
    assert lived(tmp_path, "metal", [first, tune(cpu_power={"governor": "performance"})]) == ""


def test_cpus_that_are_offline_because_a_file_switched_smt_off_come_back_with_it(tmp_path: Path) -> None:
    life = Life(World(tmp_path, "nitro"))
    assert life.world.somebody("/sys/devices/system/cpu/cpu3/online", "0")
    life.do(failing(tune(smt={"threads": "disabled"}), 20, "EIO", length=1000, after=True))
    life.do(Step("reboot", {"unit": True}))
    life.end()


@pytest.mark.parametrize("at", range(2, 14))
def test_what_a_killed_restore_had_put_back_is_still_an_original_after_the_unit_set_it_again(
    at: int, tmp_path: Path
) -> None:
    """The journal took the originals for values of nearmetal, and forgot them when the unit set its own again."""
    killed = failing(Step("restore", {"concern": None}), at, length=1000)
    spread = tune(network_irq={"xps": "0-1", "allow_disruptive": True})
    assert lived(tmp_path, "nitro", [spread, killed, Step("reboot", {"unit": True})]) == ""


def test_preferences_go_back_after_a_rollback_that_a_read_only_disk_stopped(tmp_path: Path) -> None:
    workloads = {"prune": False, "confirm_within": 0, "workloads": ["low_latency"], "workload_auto": "apply"}
    pruned = Step("tune", {"prune": True, "confirm_within": 120, "concerns": {"numa": {}, "network_stack": {}}})
    life = [
        Step("tune", {**workloads, "concerns": {"smt": {"threads": "kernel"}}}),
        failing(pruned, 89, "EROFS", length=1000),
        failing(Step("reboot", {"unit": True}), 57, after=True),
        Step("reapply"),
        Step("reboot", {"unit": True}),
    ]
    assert lived(tmp_path, "metal", life) == ""
