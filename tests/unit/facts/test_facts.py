# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observing by domain, predicting, and hosts that lie."""

from __future__ import annotations

import json
from typing import Callable, Dict, List, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import (
    DOMAINS,
    UNOBSERVED,
    Facts,
    observe,
    project,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.json_data import json_data
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Value
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts import files_of

Build = Callable[[Mapping[str, str]], Host]


class LyingHost(Host):
    """Returns one of its texts for every file; has the names that make an observer read on."""

    def __init__(self, texts: List[Optional[str]]) -> None:
        super().__init__("/nowhere")
        self.texts = texts
        self.asked: List[str] = []

    def _read(self, path: str, limit: int, records: bool) -> Optional[str]:
        self.asked.append(path)
        return self.texts[len(self.asked) % len(self.texts)] if self.texts else None

    def names(self, path: str) -> List[str]:
        return ["cpu0", "cpu1", "cpu99999", "index0", "index1", "node0", "node3", "online", "x.conf", "cpuidle"]

    def link(self, path: str) -> Optional[str]:
        return self.texts[0] if self.texts else None

    def exists(self, path: str) -> bool:
        return len(path) % 2 == 0


PIECES = st.sampled_from(
    [
        "0",
        "0-3",
        "0,2\n",
        "1\0",
        "",
        "Data",
        "ffffffff,ffffffff",
        "xen",
        "Amazon EC2",
        "HVM domU",
        "10 20",
        "\ufffd",
        "²",
        ",",
    ]
)


@pytest.mark.parametrize("domain", DOMAINS)
@given(texts=st.lists(st.one_of(st.none(), PIECES, st.text(max_size=200)), max_size=12))
def test_whatever_a_host_says_a_domain_is_plain_data_or_our_error(domain: str, texts: List[Optional[str]]) -> None:
    try:
        facts = observe(LyingHost(texts), [domain])
    except NearmetalError:
        return
    json.dumps(json_data(getattr(facts, domain)), default=sorted)
    assert getattr(facts, domain) is not None


@pytest.mark.parametrize("domain", ["platform", "topology", "clock", "cpu"])
@given(texts=st.lists(st.one_of(st.none(), PIECES, st.text(max_size=200)), max_size=12))
def test_facts_that_every_run_needs_are_observed_on_any_host(domain: str, texts: List[Optional[str]]) -> None:
    assert getattr(observe(LyingHost(texts), [domain]), domain) is not None


def test_only_the_domains_asked_for_are_read() -> None:
    host = LyingHost([])
    facts = observe(host, ["clock"])
    assert facts.platform is UNOBSERVED
    assert facts.topology is UNOBSERVED
    assert facts.clock is not None
    assert all("/node" not in path and "/dmi" not in path for path in host.asked)


def test_a_domain_is_read_once() -> None:
    once, twice = LyingHost([]), LyingHost([])
    observe(once, ["cpu"])
    observe(twice, ["cpu", "cpu"])
    assert once.asked == twice.asked


def test_an_unknown_domain_is_named(host_of: Build) -> None:
    with pytest.raises(NearmetalError, match="'weather'"):
        observe(host_of({}), ["weather"])


def action(what: str, after: Value, where: str = "") -> Action:
    return Action("clocksource", "source", what, None, after, "why", "AWS, 2017", where=where)


def test_a_projection_shows_the_fact_as_it_will_be(host_of: Build) -> None:
    folder = "/sys/devices/system/clocksource/clocksource0/"
    files = {folder + "current_clocksource": "xen\n", folder + "available_clocksource": "xen tsc \n"}
    before = observe(host_of(files), ["clock", "files"])
    after = project(before, [action("clock.current", "tsc"), action("files", "text", "/etc/tmpfiles.d/x.conf")])
    assert after.clock is not None
    assert after.clock.current == "tsc"
    assert after.clock.vdso is True
    assert after.files == {"/etc/tmpfiles.d/x.conf": "text"}
    assert before.clock is not None
    assert before.clock.current == "xen"
    assert project(after, [action("files", None, "/etc/tmpfiles.d/x.conf")]).files == {}


@pytest.mark.parametrize(
    ("name", "affinity", "effective"),
    [
        ("nitro_big", "6-15", None),
        ("nitro_big", "0-15", "5"),
        ("nitro_big", "6", "6"),
        ("nitro_big", "6,448", "6"),
        ("xen_hvm", "0-2", "0"),
        ("xen_hvm", "2-3", "2"),
    ],
)
def test_a_projection_shows_where_an_interrupt_is_delivered_then(
    name: str, affinity: str, effective: Optional[str], host_of: Build
) -> None:
    """x86 doesn't move an interrupt that may stay, Xen moves it to the first CPU, and other choices are unknown."""
    present = "5" if name == "nitro_big" else "1"
    files = {path: f"{present}\n" if "/effective" in path else text for path, text in files_of(name).items()}
    before = observe(host_of(files), ["network", "topology", "platform"])
    assert before.network is not None
    place = before.network.nics[0].place
    after = project(before, [action("network.affinity", {"0": affinity}, place)]).network
    assert after is not None
    assert after.effective[place].get("0") == effective
    assert after.effective[place]["1"] == present
    others = {irq_place: table for irq_place, table in before.network.effective.items() if irq_place != place}
    assert {irq_place: table for irq_place, table in after.effective.items() if irq_place != place} == others


@pytest.mark.parametrize("what", ["clock.current", "clock.weather", "weather", "weather.now"])
def test_a_projection_of_facts_that_were_not_observed_changes_nothing(what: str) -> None:
    facts = Facts()
    assert project(facts, [action(what, "tsc")]) == facts


ARM: Dict[str, str] = {"0xd0c": "Neoverse-N1", "0xd40": "Neoverse-V1", "0xd4f": "Neoverse-V2", "0xfff": "part 0xfff"}


@pytest.mark.parametrize("part", ARM)
def test_graviton_processors_have_a_name(part: str, host_of: Build) -> None:
    text = "processor\t: 0\nFeatures\t: fp atomics sve\nCPU implementer\t: 0x41\nCPU part\t: {}\n".format(part)
    cpu = observe(host_of({"/proc/cpuinfo": text}), ["cpu"]).cpu
    assert cpu is not None
    assert (cpu.vendor, cpu.model, cpu.flags) == ("ARM", ARM[part], ("atomics", "sve"))
