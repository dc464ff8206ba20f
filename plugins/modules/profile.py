#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: profile
short_description: Show in which functions this host spends its time
version_added: 0.3.0
description:
  - Has C(perf) look at all CPUs many times a second, for some seconds under the load that the host has anyway, and
    returns in which functions of which programs and of the kernel they were. Nothing is tuned.
  - Writes three files for each host into the report directory. The page shows the functions as an icicle, in which you
    can search and which you can magnify. The second file has the folded stacks that speedscope and inferno read, the
    third the result as JSON. Reports of an audit show its advice below their ninth heading.
  - What C(perf) recorded stays in a temporary folder on the host. At the end, also if the task fails or is killed, it
    is removed, and none of its processes is left.
  - Nothing is installed, and without O(kernel_names) no setting of the kernel is changed. Where C(perf) is missing or
    may not record, the result says why, with the package to install, and has what the kernel counted. What a profile
    can't show, such as functions without a name, is a sentence of its result.
options:
  seconds: {description: "How long to record, 1 to 600 s.", type: float, default: 30}
  frequency:
    description:
      - Samples per second of each CPU, 1 to 999. The default isn't 100, so that what happens 100 times a second isn't
        always or never seen.
    type: int
    default: 99
  waits:
    description:
      - After the samples, also record for 2 s each switch from one thread to another, and for 2 s each system call. The
        result says for what threads wait, and how late they get a CPU. This slows a host with many switches or calls
        for these seconds. Where C(perf) isn't allowed to, the result says so.
    type: bool
    default: false
  kernel_names:
    description:
      - Where C(kernel.kptr_restrict) is 2, which hides the names of the kernel's functions from root too, set it to 1
        while C(perf) records and looks them up. It is given back at the end; if the task is killed, by a timer.
    type: bool
    default: false
attributes:
  check_mode:
    description: In check mode nothing is recorded; what would keep it from being recorded is said as in a real run.
    support: full
  diff_mode: {description: "Changes nothing, so there is no difference to show.", support: none}
  idempotent: {description: "It changes nothing, or gives it back.", support: full}
  platform: {description: The systems it works on., support: full, platforms: linux}
notes:
  - Needs root on the host. Fetching the names of functions keeps one CPU busy for some seconds after the recording.
  - With C(async) the result has the packed stacks, and no file is written.
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Where does the time go?
  nearmetal.ec2.profile:
    seconds: 10
  become: true
  register: profiled

- name: Show the functions with the largest share of their own
  ansible.builtin.debug:
    var: profiled.top
"""

RETURN = r"""
msg:
  description: One line with the busiest functions.
  type: str
  returned: always
  sample: "profile: 5880 samples in 30 s; most in copy_user_generic_unrolled_[k] 12.1%, dictFind 8.3%"
page: {description: The page with the picture., type: str, returned: when it was written}
folded: {description: "The file with a line per stack, C(program;caller;function samples).", type: str,
  returned: when it was written}
document: {description: "The result as JSON, of which an audit of the next 30 days shows the advice.", type: str,
  returned: when it was written}
samples: {description: The samples that found a CPU busy., type: int, returned: when it was recorded}
idle: {description: The samples that found a CPU idle., type: int, returned: when it was recorded}
busy: {description: "The share of the former, 0 to 1; of CPU cycles always 1.", type: float,
  returned: when it was recorded}
event: {description: "What took the samples, V(cycles) of the CPU, or V(cpu-clock) where it counts none.", type: str,
  returned: when it was recorded}
frequency: {description: Samples per second of each CPU., type: int, returned: when it was recorded}
seconds: {description: How long the recording took., type: float, returned: when it was recorded}
top:
  description: The functions with the largest share of their own. Those of the kernel end in C(_[k]).
  type: list
  elements: dict
  returned: when it was recorded
  contains: {name: {description: The function., type: str},
    own: {description: "The share of all samples that ended in it, 0 to 1.", type: float},
    share: {description: "The share of all samples that it, or something that it called, was in.", type: float}}
counters:
  description: What the kernel counted meanwhile. What this kernel doesn't say is missing.
  type: dict
  returned: always but in check mode
  contains: {
    seconds: {description: How long it was counted., type: float}, cpus: {description: CPUs online., type: int},
    runnable: {description: The mean number of threads that ran or wanted to., type: float},
    steal: {description: "The share of the CPUs' time that other guests of the machine took, 0 to 1.", type: float},
    context_switches: {description: Changes from one thread to another., type: int},
    interrupt_load: {description: "CPU → the share of its time in interrupts, 0 to 1.", type: dict},
    interrupts: {description: CPU → how many., type: dict}, softirqs: {description: CPU → how many., type: dict},
    busiest_cpu: {description: The CPU with the largest load of interrupts., type: dict, contains: {
      cpu: {description: Its number., type: int}, interrupts: {description: Line → how often., type: dict},
      softirqs: {description: Kind → how often., type: dict}}},
    pgfault: {description: Page faults., type: int}, pgmajfault: {description: Those that read a disk., type: int},
    thp_fault_alloc: {description: Huge pages that a fault got., type: int},
    thp_collapse_alloc: {description: Huge pages made of small ones., type: int},
    compact_stall: {description: Programs that waited while memory was moved together., type: int},
    pswpin: {description: Pages from swap., type: int}, pswpout: {description: Pages to swap., type: int},
    numa_hit: {description: Pages of the node that was asked for., type: int},
    numa_miss: {description: Pages of another node., type: int},
    numa_hint_faults: {description: Page faults by which the kernel learns which node uses a page., type: int},
    pgmigrate_success: {description: Pages that were moved., type: int},
    allocstall_normal: {description: Programs that had to free memory before they got some., type: int},
    retransmitted: {description: Segments of TCP that were sent again., type: int},
    sent: {description: Segments of TCP that were sent., type: int},
    listen_drops: {description: Connections that a full backlog dropped., type: int},
    dropped: {description: "Packets that a full queue of a CPU dropped, of softnet_stat.", type: int},
    squeezed: {description: "Rounds of receiving that ended with packets left, of softnet_stat.", type: int}}
advice:
  description: What of it a setting could change.
  type: list
  elements: dict
  returned: always but in check mode
  contains: {name: {description: "The kind, the same in every run.", type: str},
    says: {description: A sentence., type: str},
    knob: {description: "The setting, or null where nearmetal has none.", type: str}}
waits:
  description: How threads waited for 2 s. Times are sums over all threads, in seconds.
  type: dict
  returned: with O(waits), where C(perf) may see it
  contains: {
    wakeups: {description: How often a thread that had waited went on., type: int},
    delay: {description: "How long it then waited for a CPU, on average.", type: float},
    late: {description: "The share of them that got a CPU after more than a millisecond, 0 to 1.", type: float},
    programs: {description: "The programs that could have run longest, and had no CPU.", type: list, elements: dict,
      contains: {
      name: {description: The program., type: str}, runs: {description: How often a thread got a CPU., type: int},
      ran: {description: How long they ran., type: float},
      ready: {description: "How long they could have run.", type: float},
      longest: {description: The longest of these times., type: float},
      blocked: {description: How long they waited for something else., type: float}}},
    places: {description: For what they waited longest., type: list, elements: dict, contains: {
      name: {description: The program., type: str},
      where: {description: "The functions of the kernel in which it waited, the innermost first.", type: str},
      waits: {description: How often., type: int}, blocked: {description: How long., type: float}}}}
calls:
  description: The most frequent system calls of 2 s.
  type: list
  elements: dict
  returned: with O(waits), where C(perf) may see it
  contains: {
    name: {description: The program., type: str}, call: {description: The system call., type: str},
    calls: {description: How often., type: int}, errors: {description: How often it failed., type: int},
    seconds: {description: "How long all of them took, with what they waited for.", type: float}}
notes: {description: "What the profile doesn't show, and why.", type: list, elements: str,
  returned: always but in check mode}
version: {description: The version of perf., type: str, returned: when it was recorded}
kernel: {description: The release of the kernel., type: str, returned: always but in check mode}
stacks: {description: "The tree of functions, packed.", type: str, returned: with C(async)}
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("profile")

if __name__ == "__main__":
    main()
