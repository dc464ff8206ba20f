# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter host_drivers; its documentation is in host_drivers.yml."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._instances import drivers, reports


def of_hosts(hosts: Iterable[str], hostvars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The network drivers that hosts reported; a host without a report is left out."""
    return reports(drivers, (hostvars[host] for host in hosts if host in hostvars))


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"host_drivers": of_hosts}
