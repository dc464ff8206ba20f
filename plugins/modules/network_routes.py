#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give each secondary network interface routes of its own, or take them back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_routes
short_description: Give each secondary network interface of a Linux host on EC2 routes of its own
version_added: 0.1.0
description:
  - Makes replies leave through the interface on which the request arrived. Each address of a secondary interface gets a
    rule (C(ip rule)), and its interface a routing table of its own, for IPv4 and IPv6.
  - Without that, Linux sends all replies by the default route, through the first interface. There EC2 drops packets
    that have the address of another interface.
  - Neither the interface with the default route nor the main table is ever changed.
  - Where amazon-ec2-net-utils, ec2-net-utils, nm-cloud-setup, cloud-netconfig or cloud-init has given an interface
    routes of its own, a finding says so and nothing is changed.
  - The rules hold for packets of the host itself. Packets that it forwards, for containers for example, are routed as
    before.
options:
  own_routes:
    description:
      - V(enabled) gives each secondary interface a routing table of its own, V(kernel) leaves all replies to the main
        table.
      - If this option is left out, it is unmanaged, and what an earlier run had set is taken back.
    type: str
    choices: [enabled, kernel]
  persist:
    description:
      - Whether this is planned again on the host at each boot, for each interface that appears, and within two and a
        half minutes after an interface gets an address.
      - Where systemd-networkd runs, also whether a file in C(/etc/systemd/networkd.conf.d) keeps it from removing rules
        and routes of other programs whenever it starts.
      - With V(last), C(nearmetal.service) sets it once more after C(multi-user.target), past what a boot starts.
    type: raw
    default: true
extends_documentation_fragment:
  - nearmetal.ec2.state.common
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
  - nearmetal.ec2.attributes.actiongroup_tuning
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Make replies leave through the interface on which the request arrived
  nearmetal.ec2.network_routes:
    own_routes: enabled

- name: Take it back
  nearmetal.ec2.network_routes:
    state: restored
"""

RETURN = r"""
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("network_routes")

if __name__ == "__main__":
    main()
