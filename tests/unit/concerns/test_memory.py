# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""memory's real main() on a fake kernel whose limits of dirty file cache exclude each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import memory, restore, tune

from tests.support.fake_kernel import FakeKernel, everything
from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
OPTIONS = {
    "swappiness": 1,
    "overcommit": "always",
    "aio_max_nr": 1048576,
    "max_map_count": 262144,
    "min_free_kbytes": 131072,
    "dirty": "268435456",
    "dirty_background": "5%",
    "ksm": "enabled",
}
SET = {
    "vm/swappiness": "1",
    "vm/overcommit_memory": "1",
    "fs/aio-max-nr": "1048576",
    "vm/max_map_count": "262144",
    "vm/min_free_kbytes": "131072",
    "vm/dirty_ratio": "0",
    "vm/dirty_bytes": "268435456",
    "vm/dirty_background_ratio": "5",
    "vm/dirty_background_bytes": "0",
}
NATIVE = "etc/sysctl.d/99-nearmetal-memory.conf"


def parameters(host: FakeKernel) -> Dict[str, str]:
    """The parameters as the kernel has them."""
    return {key: (Path(host.root) / "proc/sys" / key).read_text().strip() for key in SET}


def ksm(host: FakeKernel) -> str:
    """Whether the kernel merges pages."""
    return (Path(host.root) / "sys/kernel/mm/ksm/run").read_text()


def test_no_number_of_areas_is_set_with_which_no_program_starts(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    answer = call(memory.main, host, max_map_count=1)
    assert answer["msg"] == "memory.max_map_count must be a whole number from 65530 to 2147483647, not 1"
    assert parameters(host)["vm/max_map_count"] == "65530"


def test_check_apply_check_apply_restore(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    before = everything(host)
    assert call(memory.main, host, check=True, **OPTIONS)["changed"]
    assert everything(host) == before
    assert call(memory.main, host, **OPTIONS)["changed"]
    assert (parameters(host), ksm(host)) == (SET, "1\n")
    assert not call(memory.main, host, check=True, **OPTIONS)["changed"]
    assert not call(memory.main, host, **OPTIONS)["changed"]
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


@pytest.mark.parametrize(
    ("first", "second"), [("20%", "268435456"), ("268435456", "40%"), ("268435456", "536870912"), ("10%", "30%")]
)
def test_a_limit_goes_back_to_the_file_that_the_host_used(tmp_path: Path, call: Call, first: str, second: str) -> None:
    host = fresh(tmp_path, "nitro")
    call(memory.main, host, dirty=first, persist=False)
    (tmp_path / "var/lib/nearmetal/journal.json").unlink(missing_ok=True)
    (tmp_path / "var/lib/nearmetal/wanted.json").unlink(missing_ok=True)
    before = parameters(host)
    call(memory.main, host, dirty=second, persist=False)
    written = [int(parameters(host)[f"vm/dirty_{unit}"]) for unit in ("ratio", "bytes")]
    assert written == [0, int(second)] if second.isdigit() else [int(second[:-1]), 0]
    call(restore.main, host)
    assert parameters(host) == before


@pytest.mark.parametrize("name", ["dirty", "dirty_background"])
@pytest.mark.parametrize("goal", ["10%", "268435456"])
def test_a_limit_of_nothing_goes_back(tmp_path: Path, call: Call, name: str, goal: str) -> None:
    host = fresh(tmp_path, "nitro")
    (tmp_path / f"proc/sys/vm/{name}_ratio").write_text("0\n")
    before = parameters(host)
    assert call(memory.main, host, persist=False, **{name: goal})["changed"]
    assert parameters(host) != before
    assert not call(restore.main, host).get("failed")
    assert parameters(host) == before


def test_a_boot_brings_all_of_it_again_and_the_unit_what_depends_on_the_size(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    before = parameters(host)
    call(memory.main, host, **OPTIONS)
    host.reboot("99999999-0000-0000-0000-000000000000")
    assert (parameters(host), ksm(host)) == ({**SET, "vm/min_free_kbytes": before["vm/min_free_kbytes"]}, "1\n")
    assert command(["reapply"], host) == 0
    assert parameters(host) == SET
    call(restore.main, host)
    host.reboot("99999999-0000-0000-0000-000000000001")
    assert (parameters(host), ksm(host)) == (before, "0\n")


@pytest.mark.parametrize(("kilobytes", "found"), [(64000000, "131072"), (2000000, "67584")])
def test_memory_kept_free_fits_the_type_that_the_disk_is_started_as(
    tmp_path: Path, call: Call, kilobytes: int, found: str
) -> None:
    host = fresh(tmp_path, "nitro")
    call(memory.main, host, min_free_kbytes=131072, max_map_count=262144)
    assert parameters(host)["vm/min_free_kbytes"] == "131072"
    smaller = {**host.hardware, "/proc/meminfo": f"MemTotal:       {kilobytes} kB\n"}
    host.reboot("99999999-0000-0000-0000-000000000000", smaller)
    assert command(["reapply", "--if-changed"], host) == 0
    assert (parameters(host)["vm/min_free_kbytes"], parameters(host)["vm/max_map_count"]) == (found, "262144")
    call(restore.main, host)
    assert parameters(host)["vm/min_free_kbytes"] == "67584"


def test_a_host_that_boots_as_a_smaller_type_gets_no_promise_that_it_can_not_keep(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    call(memory.main, host, overcommit="never")
    assert parameters(host)["vm/overcommit_memory"] == "2"
    assert not (tmp_path / NATIVE).exists()
    memory_of_smaller = "MemTotal: 1000000 kB\nCommitLimit: 500000 kB\nCommitted_AS: 300000 kB\n"
    host.reboot("99999999-0000-0000-0000-000000000000", {**host.hardware, "/proc/meminfo": memory_of_smaller})
    command(["reapply"], host)
    assert parameters(host)["vm/overcommit_memory"] == "0"


TUNED = {
    "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "1\n",
    "/etc/tuned/active_profile": "site\n",
}


@pytest.mark.parametrize(
    ("files", "owner"),
    [
        ({**TUNED, "/etc/tuned/site/tuned.conf": "[vm]\ndirty_bytes = 40%\n"}, "tuned"),
        ({**TUNED, "/etc/tuned/site/tuned.conf": "[sysctl]\nvm.dirty_ratio = 40\n"}, "tuned"),
        ({"/etc/sysctl.d/99-site.conf": "vm.dirty_ratio = 40\n"}, "/etc/sysctl.d/99-site.conf"),
        ({"/etc/sysctl.d/99-site.conf": "vm.dirty_bytes = 1000000\n"}, "/etc/sysctl.d/99-site.conf"),
        ({**TUNED, "/etc/tuned/site/tuned.conf": "[sysctl]\nvm.dirty_ratio = 10\n"}, ""),
        ({**TUNED, "/etc/tuned/site/tuned.conf": "[sysctl]\nvm.dirty_background_ratio = 40\n"}, ""),
        ({"/etc/sysctl.d/99-site.conf": "vm.dirty_ratio = 10\n"}, ""),
    ],
)
def test_a_limit_has_one_owner_whichever_file_that_owner_writes(
    tmp_path: Path, call: Call, files: Dict[str, str], owner: str
) -> None:
    host = fresh(tmp_path, "nitro")
    for path, text in files.items():
        place = tmp_path / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    done = call(memory.main, host, dirty="10%", persist=False)
    refused = [finding["owner"] for finding in done["findings"] if finding["status"] == "refused"]
    assert refused == ([owner] if owner else [])
    assert parameters(host)["vm/dirty_ratio"] == ("20" if owner else "10")


def test_kubelet_owns_overcommit_and_nothing_else(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    done = call(memory.main, host, overcommit="never", swappiness=1, persist=False)
    refused = {finding["knob"]: finding["owner"] for finding in done["findings"] if finding["status"] == "refused"}
    assert refused == {"overcommit": "kubelet"}
    assert parameters(host)["vm/swappiness"] == "1"


def test_a_value_of_somebody_else_is_left_and_named(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    call(memory.main, host, dirty="268435456", ksm="enabled")
    host.write_value("/proc/sys/vm/dirty_ratio", "33\n")
    host.write_value("/sys/kernel/mm/ksm/run", "2\n")
    done = call(restore.main, host)
    assert (parameters(host)["vm/dirty_ratio"], ksm(host)) == ("33", "2\n")
    said = " ".join(finding["reason"] for finding in done["findings"])
    assert "somebody set it to 33% after nearmetal did: left alone; before nearmetal it was 20%" in said


def test_two_workloads_on_one_host_get_what_satisfies_both(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    call(tune.main, host, workload=["in_memory_database", "analytics", "jvm"])
    found = parameters(host)
    assert (found["vm/swappiness"], found["vm/max_map_count"]) == ("1", "1048576")
    assert (found["vm/overcommit_memory"], found["vm/dirty_ratio"]) == ("1", "40")


def test_a_workload_ends_a_never_of_nearmetals_own_and_no_other(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    call(memory.main, host, overcommit="never")
    assert parameters(host)["vm/overcommit_memory"] == "2"
    call(tune.main, host, workload=["in_memory_database"])
    assert parameters(host)["vm/overcommit_memory"] == "1"
    host.write_value("/proc/sys/vm/overcommit_memory", "2\n")
    done = call(tune.main, host, workload=["in_memory_database"])
    assert parameters(host)["vm/overcommit_memory"] == "2"
    assert "refused" in {finding["status"] for finding in done["findings"] if finding["knob"] == "overcommit"}
