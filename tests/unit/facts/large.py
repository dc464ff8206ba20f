# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large host as files, for the budgets."""

from __future__ import annotations

from typing import Dict

CPU = "/sys/devices/system/cpu/"


def host(cpus: int) -> Dict[str, str]:
    """A machine of two sockets with SMT: half-way siblings, four caches per core."""
    half = cpus // 2
    files = {CPU + name: "0-{}\n".format(cpus - 1) for name in ("online", "present", "possible")}
    for cpu in range(cpus):
        core = cpu % half
        socket = "0-{0},{1}-{2}" if core < half // 2 else "{3}-{4},{5}-{6}"
        package = socket.format(
            half // 2 - 1, half, half + half // 2 - 1, half // 2, half - 1, half + half // 2, cpus - 1
        )
        pair = "{},{}".format(core, core + half)
        folder = "{}cpu{}/".format(CPU, cpu)
        mask = "{:x}".format(1 << core | 1 << core + half)
        width = -(-len(mask) // 8) * 8
        words = ",".join(mask.zfill(width)[start : start + 8] for start in range(0, width, 8))
        files[folder + "topology/thread_siblings"] = words
        files[folder + "topology/core_siblings_list"] = package
        caches = (("1", "Data", pair), ("1", "Instruction", pair), ("2", "Unified", pair), ("3", "Unified", package))
        for number, (level, kind, shared) in enumerate(caches):
            index = "{}cache/index{}/".format(folder, number)
            files.update({index + "level": level, index + "type": kind, index + "shared_cpu_list": shared})
    return files
