#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: benchmark
short_description: Run a ready benchmark once on this host
version_added: 0.1.0
description:
  - Measures one thing once with a tool of the distribution, and returns the figures. Nothing is tuned. To compare a
    tuning with the untuned host, name the benchmark in O(nearmetal.ec2.prove#module:benchmark).
  - The run has a folder of its own, and limits of time and memory. At its end, also if it fails or is killed, none of
    its processes and none of its files is left.
  - The figures of each run are added to the baseline, a file for each host in the report directory. Reports rank the
    hosts of one instance type by it, and name a host that differs from its sisters.
  - Nothing is installed. A missing tool, an occupied port or too little room on a disk fails in one sentence before
    anything starts.
options:
  name:
    description:
      - Which benchmark. C(docs/benchmarks.md) of the collection says what each answers, what it needs, and what it
        can't say.
      - Required to measure.
    type: str
    choices: [clock, disk, key_value, memory, latency, network, web, cache, unixbench, ebizzy]
  options:
    description:
      - Options of the benchmark, such as C(seconds), the time that it measures.
    type: dict
    default: {}
  load_on:
    description:
      - Clients, which are other hosts of the inventory, on which the load runs together in place of this host. Their
        rates are added, and the times of their answers counted together. Needs C(part=client) among the options.
      - A client that fails ends the run, whose error names it. Only the figures of a single client are added to its
        baseline.
    type: list
    elements: str
    default: []
  start_at:
    description: The moment at which the load begins, in seconds since 1970. Set by the controller's side.
    type: float
    default: 0.0
attributes:
  check_mode:
    description: In check mode nothing is measured; what would keep the benchmark from running fails as in a real run.
    support: full
  diff_mode:
    description: Changes nothing that lasts, so there is no difference to show.
    support: none
  idempotent:
    description: Changes nothing, but for a raw device that you have C(disk) write to.
    support: full
  platform:
    description: The systems it works on.
    support: full
    platforms: linux
notes:
  - Needs root on the host, which starts the tools as the user nobody, except where a benchmark can't do without root.
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: What does a clock read cost?
  nearmetal.ec2.benchmark:
    name: clock
    options:
      seconds: 5
  become: true
  register: measured

- name: Show the figures
  ansible.builtin.debug:
    var: measured.metrics
"""

RETURN = r"""
msg:
  description: One line with the figures.
  type: str
  returned: always
  sample: "clock: read 24.1 ns (clock_source tsc, system_calls_per_1000_reads 0)"
metrics:
  description: The figures, the deciding one first.
  type: list
  elements: dict
  returned: when it was measured
  contains:
    name:
      description: What was measured.
      type: str
      sample: read
    value:
      description: The figure.
      type: float
      sample: 24.1
    unit:
      description: Its unit.
      type: str
      sample: ns
    better:
      description: Whether V(larger) or V(smaller) is better.
      type: str
      sample: smaller
details:
  description: What explains the figures, such as the clock source in use, and what was offered. The mean and the median
    of the answers' times are here, in ms.
  type: dict
  returned: when it was measured
histograms:
  description: How many answers took how many microseconds, for each kind of request. It can be added to that of another
    client, which a percentile can't.
  type: dict
  returned: when the tool says so
clients:
  description: The figures of each client by its name.
  type: dict
  returned: when O(load_on) names clients
versions:
  description: The version of each tool, as the tool prints it.
  type: dict
  returned: when it was measured
commands:
  description: The commands that were started, the servers first.
  type: list
  elements: str
  returned: when it was measured
used:
  description: The CPU time in seconds and the number of page faults of all commands, without the servers.
  type: dict
  returned: when it was measured
  sample: {user_seconds: 1.9, system_seconds: 0.1, page_faults: 2201}
seconds:
  description: How many seconds the whole run took.
  type: float
  returned: when it was measured
  sample: 2.4
platform:
  description: The host on which the run was made; C(instance) is a digest of the instance's id.
  type: dict
  returned: when it was measured
  sample: {instance_type: m5.2xlarge, instance: 0f1e2d3c4b5a, host_class: nitro, kernel: 6.1.0}
limits:
  description: Whether the volume or the instance limited a disk on EBS, and what the instance type can do.
  type: str
  returned: when V(disk) measured an EBS volume
  sample: "your knee is the instance's cap, not the volume's"
baseline:
  description: The file of the host's runs, to which this one was added.
  type: str
  returned: when the run was recorded
  sample: nearmetal-report/benchmark/redis-1.jsonl
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("benchmark")

if __name__ == "__main__":
    main()
