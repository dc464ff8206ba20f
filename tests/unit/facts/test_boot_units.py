# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which units a boot starts, and from which of their files."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import boot_units
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import udev_rules

from tests.support.hosts import lay_out


def test_a_pattern_in_the_root_folder_matches_also_on_the_host_that_runs() -> None:
    assert boot_units.matching(Host(), "/et*") == ["/etc"]


def test_a_unit_of_a_generator_hides_the_package_s(tmp_path: Path) -> None:
    unit, set_it = "/usr/lib/systemd/system/site.service", "/sbin/sysctl -w vm.swappiness=60"
    files = {
        unit: "[Service]\nExecStart=/bin/true\n",
        "/etc/systemd/system/multi-user.target.wants/site.service": f"-> {unit}",
        "/run/systemd/generator/site.service": f"[Service]\nExecStart={set_it}\n",
    }
    lay_out(tmp_path, files)
    assert [found.commands for found in boot_units.started(Host(str(tmp_path)))] == [(set_it,)]


def test_properties_of_a_rule_that_double_each_other_stay_short() -> None:
    rules = 'ENV{a}="12345678"\n' + 'ENV{a}="$env{a}$env{a}"\n' * 40
    assert all(len(value) < 5000 for _key, _part, _sign, value in udev_rules.assignments(rules, {}, lambda name: None))
