#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare two hosts under the same load: the documentation; the work is done by the action plugin."""

from __future__ import annotations

DOCUMENTATION = r"""
module: compare
short_description: Compare two hosts under the same load
version_added: 0.2.0
description:
  - Runs one load on each of two hosts in pairs, and a seeded coin decides which host of a pair comes first. It says by
    how much the second host is faster or slower than the first, with the statistics of M(nearmetal.ec2.prove).
  - Nothing is tuned or changed. Two hosts differ in more than what you may want to compare, such as their hardware.
options:
  hosts:
    description: Two hosts of the inventory, the one to compare with first, such as a metal one and then a guest.
    type: list
    elements: str
    required: true
  command:
    description: The load for C(/bin/sh), as in O(nearmetal.ec2.prove#module:command). This or O(benchmark) is required.
    type: str
  benchmark:
    description: A ready benchmark of M(nearmetal.ec2.benchmark) in place of O(command).
    type: str
    choices: [clock, disk, key_value, memory, latency, network, web, cache, unixbench, ebizzy]
  benchmark_options:
    description: Options of the benchmark.
    type: dict
    default: {}
  timed:
    description: Whether the time that the command takes is the figure.
    type: bool
    default: false
  tolerate:
    description: Programs that run on the hosts all the time, and whose CPU time makes no measurement void.
    type: list
    elements: str
    default: []
  seconds:
    description: How long one measurement takes, 0.1 to 3600 s, about.
    type: float
    default: 10
  pairs:
    description: The largest number of pairs, 6 to 200, not counting repeated ones.
    type: int
    default: 40
  margin:
    description: A difference below this percentage counts as none.
    type: float
    default: 2
  primary:
    description: The name of the deciding figure, by default the first.
    type: str
    default: ""
  wait:
    description: How many seconds the run may wait in all until a host is quiet again, 0 to 86400.
    type: int
    default: 300
  seed:
    description: Seed of the random order; random by default.
    type: int
attributes:
  action:
    description: Runs on the controller, and the load on each of the hosts.
    support: full
  check_mode:
    description: Checks the options; nothing is measured.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
  platform:
    description: The systems it works on.
    support: full
    platforms: linux
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: How far is the guest from metal?
  nearmetal.ec2.compare:
    hosts: [metal-1, guest-1]
    benchmark: memory
    benchmark_options: {load: fresh, threads: 2}
    seconds: 5
  become: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line with the difference, or with why there is none to tell.
  type: str
  returned: always
  sample: "guest-1 4.1 % slower than metal-1 (2.0 to 6.3): fresh, 14 pairs"
verdict:
  description: The figures behind it, as in RV(nearmetal.ec2.prove#module:verdict), with the first host as C(untuned).
  type: dict
  returned: when it was measured
load:
  description: The load.
  type: str
  returned: when it was measured
record:
  description: The file with every measurement.
  type: str
  returned: when it was measured
"""
