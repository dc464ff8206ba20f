# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter packet_budget; its documentation is in packet_budget.yml."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ansible.errors import AnsibleFilterError

from ..module_utils._words import shown

# Beside its bytes, a frame on Ethernet takes the time of a preamble (8) and of the gap before the next one (12).
_AROUND_A_FRAME = 20
_LARGEST = 1e15


def packet_budget(packets_per_second: Any, cpus: Any = 1, frame_bytes: Any = 64) -> Dict[str, float]:
    """The nanoseconds for each packet, and the line's rate in Gbit/s."""
    for name, value in (("the rate", packets_per_second), ("cpus", cpus), ("frame_bytes", frame_bytes)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _LARGEST:
            raise AnsibleFilterError(f"packet_budget: {name} is {shown(value)}; it must be a number above zero")
    return {
        "nanoseconds": round(1e9 * cpus / packets_per_second, 3),
        "line_gbits": round((frame_bytes + _AROUND_A_FRAME) * 8 * packets_per_second / 1e9, 6),
    }


class FilterModule:
    def filters(self) -> Dict[str, Callable[..., Dict[str, float]]]:
        return {"packet_budget": packet_budget}
