# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tuned host becomes an image: the image has none of its values, and the host can still be restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.parameters import value_of
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.files.sysctls import defaults
from tests.support.hosts import files_of
from tests.support.knobs import every_knob
from tests.support.sequences.wanted import values_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"
SOMAXCONN = "/proc/sys/net/core/somaxconn"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SECOND_BOOT = "99999999-0000-0000-0000-000000000000"
CLOCK_AUTO = {"clocksource": {"source": "auto"}}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("nitro", {CURRENT: "acpi_pm\n", SOMAXCONN: "4096\n"}))


def text(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text().strip()


def disk(host: FakeKernel) -> Dict[str, bytes]:
    """Every file that an image of the host has."""
    root = Path(host.root)
    names = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in names.items() if name.split("/")[0] not in ("run", "proc", "sys")}


def copy_of(host: FakeKernel, **files: str) -> None:
    """Start another instance from an image of the host, whose kernel has these files."""
    own = {"/sys/devices/virtual/dmi/id/board_asset_tag": "i-0fedcba9876543210\n", **files}
    host.reboot(SECOND_BOOT, {**host.hardware, **own})


@pytest.mark.parametrize("runs", [1, 2])
def test_an_image_of_a_tuned_host_has_nothing_of_it(host: FakeKernel, call: Call, runs: int) -> None:
    before = disk(host)
    call(tune.main, host, concerns=CLOCK_AUTO)
    for _run in range(runs):
        call(tune.main, host, bake=True, concerns=CLOCK_AUTO)
    kept = b"".join(data for path, data in disk(host).items() if path.startswith("var/lib/nearmetal"))
    for own in (b"i-0123456789abcdef0", b"11111111-2222-3333-4444-555555555555", b"acpi_pm"):
        assert own not in kept
    assert text(host, CURRENT) == "tsc"
    call(restore.main, host)
    assert text(host, CURRENT) == "acpi_pm", "the baker itself can be taken back"
    assert disk(host) == before
    assert not call(restore.main, host)["changed"]


def test_a_bake_that_adds_to_the_tuning_is_taken_back_as_a_whole(host: FakeKernel, call: Call) -> None:
    before = disk(host)
    call(tune.main, host, concerns=CLOCK_AUTO)
    call(tune.main, host, bake=True, concerns={"network_stack": {"somaxconn": 8192}})
    assert text(host, SOMAXCONN) == "4096"
    back = call(restore.main, host)
    assert "acpi_pm" in back["msg"]
    assert text(host, CURRENT) == "acpi_pm"
    assert disk(host) == before


def test_tuned_between_two_bakes(host: FakeKernel, call: Call) -> None:
    before = disk(host)
    call(tune.main, host, concerns=CLOCK_AUTO)
    call(tune.main, host, bake=True, concerns=CLOCK_AUTO)
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}})
    call(tune.main, host, bake=True, concerns=CLOCK_AUTO)
    kept = b"".join(data for path, data in disk(host).items() if path.startswith("var/lib/nearmetal"))
    assert b"i-0123456789abcdef0" not in kept
    assert command(["restore", "network_stack"], host) == 0
    assert text(host, SOMAXCONN) == "4096"
    assert command(["restore"], host) == 0
    assert text(host, CURRENT) == "acpi_pm"
    assert disk(host) == before


def test_checking_a_bake_moves_no_original(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns=CLOCK_AUTO)
    tuned = disk(host)
    call(tune.main, host, check=True, bake=True, concerns=CLOCK_AUTO)
    assert disk(host) == tuned


def test_a_copy_has_no_original_values_of_the_baked_host(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns=CLOCK_AUTO)
    call(tune.main, host, bake=True, concerns=CLOCK_AUTO)
    copy_of(host, **{f"{CLOCK}/available_clocksource": "jiffies xen tsc hpet acpi_pm\n"})
    assert command(["reapply", "--if-changed"], host) == 0
    assert text(host, CURRENT) == "tsc"
    assert command(["restore"], host) == 0
    assert text(host, CURRENT) == "jiffies"


def baked_copy(host: FakeKernel, call: Call) -> None:
    """Another instance, on which files of the image override the kernel's choices at boot."""
    call(tune.main, host, bake=True, concerns={"network_stack": {"somaxconn": 8192}, "hugepages": {"thp": "never"}})
    copy_of(host)
    assert command(["reapply", "--if-changed"], host) == 0


def test_restore_on_a_copy_says_what_only_its_next_boot_brings_back(host: FakeKernel, call: Call) -> None:
    before = disk(host)
    baked_copy(host, call)
    back = call(restore.main, host)
    assert back["reboot_required"]
    waits = {(finding["knob"], finding["now"]) for finding in back["findings"] if finding["status"] == "needs_reboot"}
    assert waits == {("somaxconn", "8192"), ("thp", "never")}
    assert disk(host) == before


def test_another_value_on_a_copy_has_no_original_either(host: FakeKernel, call: Call) -> None:
    before = disk(host)
    baked_copy(host, call)
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 16384}})
    assert command(["status"], host) == 0
    back = call(restore.main, host)
    assert back["reboot_required"]
    assert text(host, SOMAXCONN) == "16384", "8192 was the image's, and 4096 isn't known"
    assert disk(host) == before


@pytest.mark.parametrize("bakes", [0, 1])
def test_a_value_that_the_host_had_before_needs_no_boot(host: FakeKernel, call: Call, bakes: int) -> None:
    """The file has the value that the host had anyway, so no running value changed, not even on the baked host."""
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 4096}})
    for _bake in range(bakes):
        call(tune.main, host, bake=True, concerns={"network_stack": {"somaxconn": 4096}})
    back = call(restore.main, host)
    assert back["changed"]
    assert not back["reboot_required"]
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 4096}})
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}})
    assert not call(restore.main, host)["reboot_required"]
    assert text(host, SOMAXCONN) == "4096"


METAL: Dict[str, Dict[str, Any]] = {
    "clocksource": {"source": "hpet"},
    "smt": {"threads": "disabled"},
    "cpu_power": {"governor": "performance", "energy_performance_preference": "performance", "turbo": "disabled"},
    "numa": {"balancing": "disabled"},
    "hugepages": {"thp": "never", "khugepaged_defrag": "disabled"},
}


def test_a_copy_of_every_kind_of_file(tmp_path: Path, call: Call) -> None:
    """Every value that files set at the boot of a copy is taken back, or reported as waiting for the next boot."""
    host = FakeKernel(tmp_path, files_of("metal"))
    before = disk(host)
    call(tune.main, host, concerns=METAL)
    values = {path: text(host, path) + "\n" for path, _word in host.written}
    # The line of tmpfiles.d for policy* is written before SMT goes off, so it reaches each one.
    policies = sorted((Path(host.root) / "sys/devices/system/cpu/cpufreq").glob("policy*"))
    values.update(
        {path.replace("policy0/", f"{policy.name}/"): values[path] for path in list(values) for policy in policies}
    )
    call(tune.main, host, bake=True, concerns=METAL)
    copy_of(host, **values)
    result = call(restore.main, host)
    assert disk(host) == before
    left = {
        (finding["knob"], finding["status"])
        for finding in result["findings"]
        if finding["knob"] not in ("persist", "agent")
    }
    known = {(knob, "changed") for knob in ("source", "threads", "turbo", "khugepaged_defrag")}
    unknown = ("governor", "energy_performance_preference", "balancing", "thp")
    assert left == {*known, *((knob, "needs_reboot") for knob in unknown), ("min_free_kbytes", "advice")}
    assert text(host, CURRENT) == "tsc"


PROFILE = "/sys/firmware/acpi/platform_profile"
# What processors and firmware of some metal hosts have.
OF_METAL = {
    **{f"/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias": "6\n" for cpu in range(16)},
    PROFILE: "balanced\n",
    f"{PROFILE}_choices": "balanced performance\n",
}


def _other_values(concern: str) -> Dict[str, Any]:
    """A value that the simulated host does not have, for each kernel parameter that a file sets at boot."""
    found: Dict[str, Any] = {}
    for knob in CONCERNS[concern].knobs:
        if knob.lever == "sysctl" and "" not in knob.by_unit:
            values = [value for value in values_of(knob.name, knob.spec or {}) if value not in (*knob.by_unit, "auto")]
            found[knob.name] = next(value for value in values if value_of(knob, value) != defaults()[knob.place])
    return found


# All values that our files set under another name than the option's, and some more.
RENAMED: Dict[str, Dict[str, Any]] = {
    **METAL,
    "cpu_power": {**METAL["cpu_power"], "energy_perf_bias": 0, "platform_profile": "performance"},
    "hugepages": {**METAL["hugepages"], "group": "99"},
    "network_stack": _other_values("network_stack"),
    "memory": {**_other_values("memory"), "dirty": "10%", "dirty_background": "67108864"},
}


def test_every_option_with_another_name_than_its_place_is_tried() -> None:
    renamed = {
        (knob.concern, knob.name)
        for knob in every_knob()
        if "" not in knob.by_unit
        if knob.lever == "sysctl" or (knob.lever and lever_of(knob.lever).files)
        if knob.name != (knob.place or knob.lever).rpartition(".")[2]
    }
    derived = {("network_irq", "rfs"), ("cpu_power", "uncore_frequency")}
    assert renamed - derived <= {(concern, knob) for concern, knobs in RENAMED.items() for knob in knobs}


def started_from_an_image(root: Path, call: Call) -> FakeKernel:
    host = FakeKernel(root, files_of("metal", OF_METAL))
    call(tune.main, host, bake=True, concerns=RENAMED)
    copy_of(host)
    assert command(["reapply", "--if-changed"], host) == 0
    return host


def wanted_as_it_was(root: Path, call: Call) -> FakeKernel:
    """A host that had by itself what is wanted, after a reboot."""
    tuned = FakeKernel(root / "tuned", files_of("metal", OF_METAL))
    call(tune.main, tuned, concerns=RENAMED)
    written = {path: text(tuned, path) + "\n" for path, _word in tuned.written}
    host = FakeKernel(root, files_of("metal", {**OF_METAL, **written}))
    call(tune.main, host, concerns=RENAMED)
    host.reboot(SECOND_BOOT)
    return host


@pytest.mark.parametrize(("prepared", "known"), [(started_from_an_image, False), (wanted_as_it_was, True)])
def test_a_value_set_at_boot_and_still_wanted_is_not_taken_back(
    tmp_path: Path, call: Call, prepared: Callable[[Path, Call], FakeKernel], known: bool
) -> None:
    host = prepared(tmp_path, call)
    call(tune.main, host, concerns=RENAMED)
    again = call(tune.main, host, concerns=RENAMED)
    assert (again["changed"], again["reboot_required"], again["actions"]) == (False, False, [])
    dropped = {**RENAMED, "network_stack": {"somaxconn": 8192}}
    waits = call(tune.main, host, concerns=dropped)
    left = {finding["knob"] for finding in waits["findings"] if finding["status"] == "needs_reboot"}
    assert left == (set() if known else RENAMED["network_stack"].keys() - {"somaxconn"})
    assert call(tune.main, host, concerns=dropped)["reboot_required"] is not known, "it is said until the boot"
