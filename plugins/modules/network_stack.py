#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_stack
short_description: Set rings, interrupt moderation, MTU and network parameters of a Linux host on EC2
version_added: 0.1.0
description:
  - Sets what the drivers of network interfaces and the kernel's network parameters offer, reads it back, and takes it
    back on request.
  - If an option is left out, it is unmanaged, and what an earlier run had set is taken back.
  - A parameter that the kernel lacks, or a setting that the driver lacks, is a finding.
  - A workload never narrows a limit; only your own values are exact. Each option says whether a workload's value of it
    is a minimum or a maximum.
options:
  rx_ring:
    description:
      - Receive descriptors per queue, a number or V(max); more of them absorb longer bursts. A workload's value is a
        minimum.
      - "Set it when: C(ethtool -S) shows C(rx_no_descriptors) or C(rx_overruns), and packets are lost in bursts
        (Netflix, 2016)."
      - "What it costs: memory per queue; packets wait longer in a full ring."
    type: str
  tx_ring:
    description:
      - Transmit descriptors per queue, a number or V(max). A workload's value is a minimum.
    type: str
  adaptive_rx:
    description:
      - Whether the driver adapts the delay of receive interrupts to the traffic.
      - "Set it when: interrupts take much CPU time (V(enabled)), or latency counts (V(disabled), with O(rx_usecs=0) and
        O(tx_usecs=0))."
      - "What it costs: latency. Aerospike, 2014, had less CPU time, but no more throughput."
    type: str
    choices: [enabled, disabled]
  rx_usecs:
    description:
      - Microseconds that a receive interrupt waits for more packets; V(0) gives the least latency.
    type: int
  tx_usecs:
    description:
      - Microseconds that a transmit interrupt waits.
    type: int
  defer_hard_irqs:
    description:
      - How often the kernel polls a queue in vain before its interrupt may come again (C(napi_defer_hard_irqs), since
        Linux 5.8). It waits O(gro_flush_timeout) before each poll; with V(0) there, this option changes nothing.
      - "Set it when: interrupts take much CPU time although the driver moderates them, or a program of yours polls its
        sockets (C(SO_PREFER_BUSY_POLL)). The kernel's own example is 10, with 20000."
      - "What it costs: a packet that comes between two polls waits for the next one. An idle queue is polled that often
        for nothing."
    type: int
  gro_flush_timeout:
    description:
      - Nanoseconds before each poll that O(defer_hard_irqs) asks for, up to 1000000. Without O(defer_hard_irqs), how
        long GRO holds a packet back for later ones.
    type: int
  offloads:
    description:
      - Whether kernel and NIC handle several packets at once.
      - "Set it when: you measured their effect, or another program must see each frame. O(offloads.ntuple=enabled)
        makes RFS a matter of the NIC (aRFS), and gains only where each CPU of the application has a queue."
      - "What it costs: O(offloads.gro) and O(offloads.tso) disabled cost CPU per packet; O(offloads.lro) enabled breaks
        forwarding. ENA has filters only on newer types, and O(offloads.ntuple) is not applicable elsewhere."
    type: dict
    suboptions:
      gro: {description: "The kernel joins incoming packets.", type: str, choices: [enabled, disabled]}
      tso: {description: "The NIC cuts a large send into frames.", type: str, choices: [enabled, disabled]}
      gso: {description: "The kernel cuts a large send late.", type: str, choices: [enabled, disabled]}
      ntuple: {description: "The NIC chooses the queue (aRFS).", type: str, choices: [enabled, disabled]}
      lro: {description: "The NIC joins packets. Not on routers.", type: str, choices: [enabled, disabled]}
  mtu:
    description:
      - The largest frame in bytes, 1280 to 9001; an internet gateway passes 1500, ENA Express 8900.
      - "Set it when: both ends are in the VPC (9001), or ENA Express is in use (8900)."
      - "What it costs: through an internet gateway 1500, so ICMP type 3 code 4 or O(mtu_probing) must work."
    type: int
  tx_queue:
    description:
      - The packets that wait to be sent. ENA Express wants O(tx_queue.bql=disabled), a lower limit as large as the
        upper one.
      - "Set it when: ENA Express is in use (O(tx_queue.bql=disabled)): byte queue limits hold its long queues back
        (amzn-ec2-ena-utilities)."
      - "What it costs: other connections wait behind a full queue."
    type: dict
    suboptions:
      length: {description: "Packets, C(txqueuelen).", type: int}
      bql: {description: "Byte queue limits.", type: str, choices: [enabled, disabled]}
  interfaces:
    description:
      - Different values for single interfaces. A bond or VLAN stands for the interfaces below it.
    type: list
    elements: dict
    suboptions:
      name: {description: "The interface.", type: str, required: true}
      rx_ring: {description: "Like O(rx_ring), for this interface.", type: str}
      tx_ring: {description: "Like O(tx_ring), for this interface.", type: str}
      adaptive_rx: {description: "Like O(adaptive_rx).", type: str, choices: [enabled, disabled]}
      rx_usecs: {description: "Like O(rx_usecs), for this interface.", type: int}
      tx_usecs: {description: "Like O(tx_usecs), for this interface.", type: int}
      defer_hard_irqs: {description: "Like O(defer_hard_irqs), for this interface.", type: int}
      gro_flush_timeout: {description: "Like O(gro_flush_timeout), for this interface.", type: int}
      offloads:
        description: Like O(offloads), for this interface.
        type: dict
        suboptions:
          gro: {description: "The kernel joins incoming packets.", type: str, choices: [enabled, disabled]}
          tso: {description: "The NIC cuts a large send into frames.", type: str, choices: [enabled, disabled]}
          gso: {description: "The kernel cuts a large send late.", type: str, choices: [enabled, disabled]}
          ntuple: {description: "The NIC chooses the queue (aRFS).", type: str, choices: [enabled, disabled]}
          lro: {description: "The NIC joins packets. Not on routers.", type: str, choices: [enabled, disabled]}
      mtu: {description: "Like O(mtu), for this interface.", type: int}
      tx_queue:
        description: Like O(tx_queue), for this interface.
        type: dict
        suboptions:
          length: {description: "Packets, C(txqueuelen).", type: int}
          bql: {description: "Byte queue limits.", type: str, choices: [enabled, disabled]}
  ena:
    description:
      - Settings that only ENA has. The driver reads the first three when it is loaded, so they are kernel arguments,
        which V(kernel) removes. An argument that the driver doesn't know is not given to it.
    type: dict
    suboptions:
      large_llq:
        description:
          - Whether ENA takes headers of up to 224 instead of 96 bytes. The transmit ring then has 512 descriptors.
        type: str
        choices: [enabled, disabled, kernel]
      bql: {description: "The driver counts bytes in flight.", type: str, choices: [enabled, disabled, kernel]}
      lpc_size: {description: "Thousands of pages that the driver keeps for receiving, 0 to 32.", type: str}
      check_express: {description: "Whether findings say what slows ENA Express down.", type: bool, default: false}
  allow_disruptive:
    description:
      - Allow rings and MTU to change on an interface that carries the default route, itself or below a bond, bridge or
        VLAN. Its traffic stops for a moment.
    type: bool
    default: false
  persist:
    description:
      - Whether all of this is set again at each boot. A file in C(/etc/sysctl.d) sets kernel parameters,
        C(nearmetal.service) sets interfaces, including those that appear later.
      - With V(last), C(nearmetal.service) sets it once more after C(multi-user.target), past what a boot starts.
    type: raw
    default: true
extends_documentation_fragment:
  - nearmetal.ec2.parameters.network_stack
  - nearmetal.ec2.state.common
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Short latency, and room for many connections
  nearmetal.ec2.network_stack:
    adaptive_rx: disabled
    rx_usecs: 0
    tx_usecs: 0
    somaxconn: 4096
    keepalive_time: 300

- name: Longer receive rings, also on the interface that carries this connection
  nearmetal.ec2.network_stack:
    rx_ring: max
    allow_disruptive: true

- name: Take it back
  nearmetal.ec2.network_stack:
    state: restored
"""

RETURN = r"""
# Generated by `make generate` from dev/generate/returns/concern.yml
msg:
  description:
    - One line, what was done or would be done.
    - Beside it the module returns C(actions), C(findings), C(errors), C(reboot_required), C(reboot_reasons),
      C(platform) and C(ansible_stats), as M(nearmetal.ec2.tune) describes them.
  type: str
  returned: always
# End of the generated part
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("network_stack")

if __name__ == "__main__":
    main()
