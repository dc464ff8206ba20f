# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What files of ours in sysctl.d and tmpfiles.d set at boot. PRIVATE to the collection.

On a host that was started from an image nobody knows what the kernel had before them.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import hugepages, power, smt, sysctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.clock import CLOCKSOURCE
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

# Lines of _planning/native.py.
_PARAMETER = re.compile(r"^([a-z0-9_.]{1,100}) = ([ -~]{1,100})$", re.ASCII | re.MULTILINE)
_WRITE = re.compile(r"^w! (/sys/[A-Za-z0-9_./*-]{1,200}) - - - - ([ -~]{1,100})$", re.ASCII | re.MULTILINE)
_DOMAINS = f"{power.CPUFREQ}/policy*/"
_THP = {
    "enabled": "thp",
    "defrag": "thp_defrag",
    "shmem_enabled": "thp_shmem",
    "khugepaged/defrag": "khugepaged_defrag",
}
_LEVERS = {
    f"{CLOCKSOURCE}/current_clocksource": "clock.current",
    smt.CONTROL: "smt.control",
    power.NO_TURBO: "power.turbo",
    power.BOOST: "power.turbo",
    f"{_DOMAINS}scaling_governor": "power.governors",
    f"{_DOMAINS}energy_performance_preference": "power.preferences",
    **{f"{folder}/{file}": f"hugepages.{knob}" for folder in hugepages.FOLDERS for file, knob in _THP.items()},
}


def set_by_file(host: WritableHost, text: str) -> Iterator[Tuple[str, str]]:
    """Lever and place of each value of a file with this text that the host still has."""
    for key, value in _PARAMETER.findall(text):
        if key in sysctl.KEYS and (host.text(sysctl.path(key), 4096) or "").split() == value.split():
            yield "sysctl", key
    for path, word in _WRITE.findall(text):
        lines = [line for line in map(host.line, _files(host, path)) if line is not None]
        if path in _LEVERS and lines and all((hugepages.choice(line)[0] or line) == word for line in lines):
            yield _LEVERS[path], ""


def _files(host: WritableHost, path: str) -> List[str]:
    if not path.startswith(_DOMAINS):
        return [path]
    return [f"{power.folder(domain)}/{path[len(_DOMAINS) :]}" for domain in power.frequency_domains(host)]
