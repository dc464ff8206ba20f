# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters instance_ids and unconfirmed_ids, which have their documentation beside."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from ..plugin_utils._ansible.instances import instance_id, unconfirmed


def ids(hosts: Iterable[str], hostvars: Mapping[str, Any]) -> list[str]:
    """The instance ids of hosts, each once; a host whose id is not known is left out."""
    known_ids = (instance_id(hostvars[host]) for host in hosts if host in hostvars)
    return list(dict.fromkeys(found_id for found_id in known_ids if found_id))


def collect_unconfirmed(hosts: Iterable[str], hostvars: Mapping[str, Any]) -> list[str]:
    """The instance ids of hosts that the inventory doesn't give to exactly one of them."""
    return unconfirmed(hostvars[host] for host in hosts if host in hostvars)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"instance_ids": ids, "unconfirmed_ids": collect_unconfirmed}
