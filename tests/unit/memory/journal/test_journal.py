# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal on disk: every entry of any lever, over any number of boots, can be read back."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import LEVERS
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Value
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import files_of, lay_out
from tests.support.kernel.routes import FILE, answer

BOOTS = tuple(f"{number}0000000-0000-0000-0000-000000000000" for number in range(1, 4))
NIC, DISK = "0000:00:05.0", "0000:00:1f.0/n1"
PER_RX, PER_TX = [{"rx-0": "0", "rx-1": "1"}, {"rx-0": "0-1"}, {}], [{"tx-0": "0"}, {"tx-0": "1"}, {}]
CHOICES, SWITCH = ["always", "madvise", "never"], ["enabled", "disabled"]
NUMBERS, TEXT_NUMBERS = [0, 64, 1024], ["0", "64", "1024", "999999999"]

# Lever → a place of its kind, and values that may be wanted there.
KINDS: Dict[str, Tuple[str, List[Any]]] = {
    "clock.current": ("", ["tsc", "kvm-clock", "hpet"]),
    "smt.control": ("", ["on", "off"]),
    "smt.offline": ("", ["", "1", "4-7"]),
    "power.idle_disabled": ("", [{"state0": "", "state1": "0-3"}, {"state0": ""}]),
    "power.governors": ("", [{"policy0": "performance"}, {"policy0": "powersave"}]),
    "power.preferences": ("", [{"policy0": "performance"}, {"policy0": "balance_power"}]),
    "power.turbo": ("", SWITCH),
    "power.biases": ("", [{"cpu0": "0", "cpu1": "6"}, {"cpu0": "15"}]),
    "power.uncore": ("", [{"package_00_die_00": "800000"}, {"package_00_die_00": "2400000"}]),
    "power.profile": ("", ["balanced", "performance"]),
    "hugepages.thp": ("", CHOICES),
    "hugepages.thp_sizes": ("64kB", [*CHOICES, "inherit"]),
    "hugepages.thp_defrag": ("", [*CHOICES, "defer+madvise"]),
    "hugepages.thp_shmem": ("", CHOICES),
    "hugepages.khugepaged_defrag": ("", SWITCH),
    "hugepages.max_ptes_none": ("", ["0", "64", "511", "8191"]),
    "hugepages.pages": ("2048kB", [{"node0": 0}, {"node0": 512, "node1": 512}]),
    "hugepages.mounts": ("/mnt/huge", [None, "pagesize=2M", "pagesize=1G,gid=70,mode=1770"]),
    "memory.dirty": ("dirty", ["20%", "10%", "268435456"]),
    "memory.ksm": ("", ["0", "1", "2"]),
    "boot.arguments": ("tsc", [None, "tsc=reliable"]),
    "network.queues": (NIC, NUMBERS),
    "irqbalance.arguments": ("/etc/default/irqbalance", [None, "", "--banmod=ena"]),
    "irqbalance.in_force": ("/etc/default/irqbalance", [None, "", "--banmod=ena"]),
    "network.affinity": (NIC, PER_RX),
    "network.rps": (NIC, PER_RX),
    "network.rfs": (NIC, [{"rx-0": 4096}, {"rx-0": 0}]),
    "network.xps": (NIC, PER_TX),
    "network.bql": (NIC, [{"tx-0": 0}, {"tx-0": 3000}]),
    "network.rings": (f"{NIC}/rx", NUMBERS),
    "network.coalesce": (f"{NIC}/rx_usecs", NUMBERS),
    "network.offloads": (f"{NIC}/tx-scatter-gather", [0, 1]),
    "network.mtu": (NIC, [1500, 9001]),
    "network.txqueuelen": (NIC, NUMBERS),
    "network.defer_hard_irqs": (NIC, NUMBERS),
    "network.gro_flush_timeout": (NIC, NUMBERS),
    "routes.paths": (f"{NIC}/10.0.0.6", ["default via 10.0.0.1", "main", "10.0.0.0/24"]),
    "block.io_timeout": (DISK, [*TEXT_NUMBERS, "4294967295"]),
    "block.scheduler": (DISK, ["none", "mq-deadline"]),
    "block.read_ahead_kb": (DISK, TEXT_NUMBERS),
    "block.nr_requests": (DISK, TEXT_NUMBERS),
    "block.nomerges": (DISK, ["0", "1", "2"]),
    "block.rq_affinity": (DISK, ["0", "1", "2"]),
    "block.max_sectors_kb": (DISK, TEXT_NUMBERS),
    "block.write_cache": (DISK, ["write back", "write through"]),
    "sysctl": ("net.core.somaxconn", ["4096", "8192", "16384"]),
    "files": ("/etc/sysctl.d/99-nearmetal-network_stack.conf", [None, "# one\n", "# two\n"]),
    "unit.enabled": ("", [None, True]),
    "unit.agent": ("", [None, "0.1.0 " + "a" * 64, "0.2.0 " + "b" * 64]),
}
# Texts of a kernel or a file that no lever can put back.
STRANGE = (None, "", "\udcff", "x.y", "a" * 300, -1, 1 << 70, {}, {"rx-0": None}, {"a": {"b": [1]}})


def test_every_lever_has_a_fake_of_its_kind() -> None:
    assert set(KINDS) == set(LEVERS)


@st.composite
def steps(draw: st.DrawFn) -> Tuple[str, Action, bool]:
    """A boot, an action on one of few places, and whether the run lives to see that it holds."""
    what = draw(st.sampled_from(sorted(KINDS)))
    where, values = KINDS[what]
    before: Value = draw(st.sampled_from([*values, *values, *STRANGE]))
    action = Action("some", "knob", what, before, draw(st.sampled_from(values)), "a test", "none", where)
    return draw(st.sampled_from(BOOTS)), action, draw(st.booleans())


def on_boot(root: Path, boot_id: str, kind: str = "") -> WritableHost:
    lay_out(root, {**(files_of(kind) if kind else {}), "/proc/sys/kernel/random/boot_id": boot_id + "\n"})
    (root / FILE).touch()
    return RoutedHost(str(root))


class RoutedHost(WritableHost):
    """A host whose kernel lists no addresses, routes and rules, instead of saying that it can't."""

    def _route(self, request: bytes) -> bytes:
        return answer(Path(self.root), request)


@given(st.lists(steps(), min_size=1, max_size=12))
def test_a_written_journal_is_read_back(story: List[Tuple[str, Action, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for boot_id, action, lives in story:
            host = on_boot(Path(folder), boot_id)
            journal = Journal(host, "i-0123456789abcdef0")
            earlier = journal.entries()
            try:
                journal.begin([action])
            except NearmetalError:
                assert Journal(host, "i-0123456789abcdef0").entries() == earlier, "refused, and yet written"
                continue
            if lives:
                journal.settle([action])
            assert Journal(host, "i-0123456789abcdef0").entries() == journal.entries()


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_original_and_wanted_values_are_found_again(what: str, data: st.DataObject) -> None:
    """An ordinary value of every lever is never refused, and restore knows both."""
    where, values = KINDS[what]
    before, after = data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))
    with tempfile.TemporaryDirectory() as folder:
        host = on_boot(Path(folder), BOOTS[0])
        Journal(host, None).begin([Action("some", "knob", what, before, after, "a test", "none", where)])
        [entry] = Journal(host, None).entries()
        assert entry.original == LEVERS[what].original(before)
        assert entry.set_values == (LEVERS[what].remembered(after),)


@pytest.mark.parametrize("what", sorted(what for what, lever in LEVERS.items() if lever.scope == "runtime"))
@pytest.mark.parametrize("kind", ["metal", "xen_hvm"])
def test_a_second_value_after_a_reboot(tmp_path: Path, kind: str, what: str) -> None:
    """A file of ours set the first one at boot: the original is the kernel's choice, or that of the earlier boot."""
    where, values = KINDS[what]
    first = on_boot(tmp_path, BOOTS[0], kind)
    Journal(first, None).begin([Action("some", "knob", what, values[1], values[0], "a test", "none", where)])
    second = on_boot(tmp_path, BOOTS[1], kind)
    Journal(second, None).begin([Action("some", "knob", what, values[0], values[1], "a test", "none", where)])
    [entry] = Journal(second, None).entries()
    elements = LEVERS[what].elements
    assert set(elements(values[1])) == set(entry.holding(values[1]))
    assert set(elements(values[0])) == set(entry.holding(values[0])), "a run that was killed has left it"
    choice = LEVERS[what].at(second, where).choice()
    if isinstance(choice, dict):
        choice = {name: choice[name] for name in entry.original}
    before = LEVERS[what].original(values[1])
    if isinstance(before, dict):
        before = {name: part for name, part in before.items() if name in (entry.original or before)}
    assert entry.original in ((before, None) if choice is None else (choice,))
    assert entry.void(BOOTS[1]) is (entry.original is None)


def test_a_name_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    host = on_boot(tmp_path, BOOTS[0])
    with pytest.raises(NearmetalError, match=r"journal\.json couldn't be read again"):
        Journal(host, None).begin([Action("some", "k" * 300, "smt.control", "on", "off", "a test", "none")])
    assert Journal(host, None).entries() == []


def test_more_bytes_than_are_read_are_not_written(tmp_path: Path) -> None:
    """As on thousands of CPUs, after a few runs that were killed."""
    host = on_boot(tmp_path, BOOTS[0])
    table = {f"policy{number}": "powersave" for number in range(4096)}
    refused = 0
    for word in "abcdef":
        for what in ("power.governors", "power.preferences"):
            earlier = Journal(host, None).entries()
            action = Action("some", "knob", what, table, dict.fromkeys(table, word * 32), "a test", "none")
            try:
                Journal(host, None).begin([action])
            except NearmetalError:
                refused += 1
                assert Journal(host, None).entries() == earlier
    assert 0 < refused < 12


def test_many_killed_runs_with_as_many_values(tmp_path: Path) -> None:
    """Every run but the first was killed before its write; the current and the wanted values are known as ours."""
    host = on_boot(tmp_path, BOOTS[0])
    present, where = "4096", "net.core.somaxconn"
    for number in range(20):
        wanted = str(8192 + number)
        lay_out(tmp_path, {"/proc/sys/net/core/somaxconn": present + "\n"})
        Journal(host, None).begin([Action("some", "knob", "sysctl", present, wanted, "a test", "none", where)])
        present = "8192"
        [entry] = Journal(host, None).entries()
        assert entry.original == "4096"
        assert entry.set_values[-1] == wanted
        assert entry.holding("8192")
        assert not entry.holding("4096")
    assert len(entry.set_values) < 10, "it grows with each killed run"


def test_a_journal_with_too_many_values_is_read(tmp_path: Path) -> None:
    """As killed runs of an earlier version left it."""
    host = on_boot(tmp_path, BOOTS[0])
    Journal(host, None).begin([Action("some", "knob", "smt.control", "on", "off", "a test", "none")])
    place = tmp_path / "var/lib/nearmetal/journal.json"
    place.write_text(place.read_text().replace('"off"', ", ".join(f'"{number}"' for number in range(9))))
    [entry] = Journal(host, None).entries()
    assert entry.holding("0")
    assert entry.holding("8")
