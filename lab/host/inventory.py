# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running hosts as text that other programs read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from lab.host import Host


def ansible(hosts: Sequence[Host]) -> str:
    """An Ansible inventory in INI form."""
    lines = ["[lab]"]
    for host in hosts:
        values = {
            "ansible_host": host.address,
            "ansible_port": str(host.port),
            "ansible_user": host.user,
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_common_args": shlex.join(host.ssh_options()),
        }
        lines.append(" ".join([host.name, *(f"{name}={shlex.quote(value)}" for name, value in values.items())]))
    return "\n".join(lines) + "\n"


def ssh_config(hosts: Sequence[Host]) -> str:
    """A configuration for ssh -F."""
    lines: list[str] = []
    for host in hosts:
        lines += [
            f"Host {host.name}",
            f"  HostName {host.address}",
            f"  Port {host.port}",
            f"  User {host.user}",
            f'  IdentityFile "{host.identity_file}"',
        ]
        pairs = [option.partition("=") for option in host.ssh_options()[5::2]]
        lines += [f'  {name} "{value}"' for name, _equals, value in pairs]
    return "\n".join(lines) + "\n"
