# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter host_volumes; its documentation is in host_volumes.yml."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._instances import heard, volumes


def of_hosts(hosts: Iterable[str], hostvars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What hosts read from their EBS volumes; a host that was not asked, or could not read it, is left out."""
    found = map(volumes, heard(hostvars[host] for host in hosts if host in hostvars))
    return [each for each in found if each]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"host_volumes": of_hosts}
