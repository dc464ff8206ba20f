#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tune
short_description: Tune several concerns of a Linux host on EC2 at once
version_added: 0.1.0
description:
  - Plans all concerns from one observation of the host, in the right order, and carries them out in one round trip.
  - A concern is applied as a whole or not at all. A concern that fails is taken back on its own, concerns that build on
    it aren't started, and the others stay. The task then fails and names it.
  - Check mode is the audit.
  - Only a write shows which values of a workload a driver refuses. So check mode reports such a value as a change each
    time, although a real run leaves it out. To avoid that, set the driver's own value for that interface, or waive the
    knob.
options:
  workload:
    description:
      - Workloads, which are named sets of wanted values, or V(auto) for those that the host's processes suggest.
      - V(base) is safe on every host class. The others are V(analytics), V(burstable), V(cache), V(hpc),
        V(in_memory_database), V(jvm), V(low_latency), V(nvme_storage), V(packet_appliance), V(sap_hana) and V(web).
        Each has a playbook of its name that spells it out.
      - A list, or names separated by commas. For each option the later workload wins; of limits and other I(at least)
        values the largest wins. Where workloads contradict each other, a finding names both.
      - V(auto) can't be combined with other names. O(workload_auto) says whether those workloads are applied.
    type: list
    elements: str
  program:
    description:
      - Programs of this host, such as V(aerospike), or V(auto) for those that run. What a program's maintainers ask of
        its host wins over O(workload), which is for its kind; O(concerns) wins over both.
      - A program's version, on which some wishes depend, is read from the database of packages or the name of a jar.
        Where it can't be, name it, as in V(mongodb=8.0).
      - A list, or names separated by commas. Of limits the value that satisfies all is used. Where programs contradict
        each other, a finding names them, and the later one wins.
      - The page C(docs/programs.md) lists them, with all that they ask for.
    type: list
    elements: str
  workload_auto:
    description:
      - V(advise) reports what V(auto) recognized and applies V(base), V(apply) applies it, or V(base) if that is
        nothing. It is for V(auto) in O(workload) and in O(program).
      - The host remembers what was applied, and it is applied again until a run names a workload, or programs, or sets
        O(prune). So nothing changes if a program isn't running at the next boot or run.
    type: str
    choices: [advise, apply]
    default: advise
  workload_concerns:
    description:
      - Like O(concerns), for a playbook that spells a workload out. It replaces O(workload).
      - Options that it leaves out aren't wanted, even if O(workload) has them. O(concerns) wins over both.
    type: dict
    default: {}
  workload_concerns_of:
    description: The workload that O(workload_concerns) spells out. A different workload in O(workload) is refused.
    type: str
    default: ""
  concerns:
    description:
      - Concerns and their options, as in the module of each concern's name; they win over the workload's.
      - A concern without options gets those of the workload, or of V(base). Anything but a mapping is an error. Use
        O(exclude) to leave a concern out.
    type: dict
    default: {}
  on_failure:
    description: When a concern fails, V(keep) leaves the concerns that worked, V(rollback) takes the whole run back.
    type: str
    choices: [keep, rollback]
    default: keep
  prune:
    description:
      - Take back the concerns of earlier runs that this run leaves out. By default they stay and are listed.
      - With V(auto) in O(workload), it also takes back recognized workloads whose programs no longer run.
    type: bool
    default: false
  metrics_directory:
    description:
      - A directory to which C(nearmetal.service) exports C(nearmetal_host.prom) for node_exporter's textfile collector,
        every ten minutes and after each plan.
      - The directory must exist, and nobody but root may be able to write to it or to a directory above it.
      - A run without this option leaves the export as it is. O(prune) ends it, and so does M(nearmetal.ec2.restore).
    type: str
  bake:
    description:
      - Write only files and kernel arguments, because an image will be made of this host; the image's first boot tunes.
      - The running system stays as it is, and nothing about this host is kept. Until its next boot,
        C(nearmetal.service) doesn't plan this host.
    type: bool
    default: false
  confirm_within:
    description:
      - Seconds, 30 to 3600, after which a network change that may cut the host off is taken back, unless a new
        connection reaches the host first; V(0) doesn't wait.
      - With Ansible the task itself opens that connection and confirms. Without it M(nearmetal.ec2.confirm) does.
    type: int
    default: 0
  show:
    description:
      - V(commands) also returns RV(commands), the shell commands that would do the same. It needs check mode.
      - They are for the host as it is now. Steps that build on an earlier step, such as those on new queues, are
        missing, and so is what nearmetal does in addition, such as keeping the original values and checking that the
        kernel took each value.
    type: str
    choices: [findings, commands]
    default: findings
extends_documentation_fragment:
  - nearmetal.ec2.state.selection
  - nearmetal.ec2.state.common
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Tune for Redis
  nearmetal.ec2.tune:
    workload: in_memory_database

- name: Tune for Redis, with your own choice of clock source
  nearmetal.ec2.tune:
    workload: in_memory_database
    concerns:
      clocksource:
        source: tsc

- name: Tune for a web server and the cache beside it
  nearmetal.ec2.tune:
    workload: [web, cache]

- name: Tune for Aerospike, whose maintainers ask for other values than the workload
  nearmetal.ec2.tune:
    workload: in_memory_database
    program: aerospike

- name: Report which workload would fit what runs on the host
  nearmetal.ec2.tune:
    workload: auto
  check_mode: true

- name: Tune a cache, but leave idle states alone, and huge pages until the next release
  nearmetal.ec2.tune:
    workload: cache
    exclude: [cpu_power.idle]
    waivers:
      - knob: hugepages.thp
        reason: the application was measured with always, see OPS-123
        expires: "2027-01-31"
"""

RETURN = r"""
workload:
  description: The wanted workloads, in their order; empty if there are none.
  type: list
  elements: str
  returned: always
commands:
  description: The lines of a shell script that would make the same changes, each below a comment with its reason.
  type: list
  elements: str
  returned: when O(show=commands)
  sample:
    - "# clocksource.source: tsc is read in user space by the vDSO, without a system call"
    - echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource
confirm_within:
  description: The seconds within which a new connection had to confirm the network change; otherwise it was taken back.
  type: int
  returned: when a change had to be confirmed
mistake: {description: "Whether an option is wrong, so that nothing was planned.", type: bool, returned: on failure}
# Generated by `make generate` from dev/generate/returns/queue_map.yml
queue_map:
  description: The CPUs that serve each queue of each interface, now and as planned, as texts such as V(0-3,8).
  type: list
  elements: dict
  returned: when network_irq was planned
  contains:
    name: {description: The interface., type: str}
    place: {description: Its device., type: str, sample: "0000:00:05.0"}
    node: {description: Its NUMA node; null if it belongs to none., type: int}
    queues:
      description:
        - "C(queue), its number, and C(now) and C(wanted): C(cpus) that answer its interrupts, their C(nodes), C(rps),
          the CPUs that help it, and C(xps), those that send through it. Null for a queue that the run adds or removes."
      type: list
      elements: dict
      sample: [{"queue": 0, "now": {"cpus": "0", "nodes": "0", "rps": "", "xps": ""}, "wanted": null}]
topology:
  description:
    - The host's sockets, cores, caches, nodes and devices in short, for a picture. CPUs are texts such as V(0-3,8).
    - M(nearmetal.ec2.topology_facts) returns all that is known about them.
  type: dict
  returned: when network_irq was planned
  contains:
    sockets: {description: The online CPUs of each socket., type: list, elements: str, sample: ["0-1"]}
    nodes: {description: Each NUMA node with its CPUs and bytes of memory., type: list, elements: dict}
    cores: {description: The online threads of each core., type: list, elements: str, sample: ["0-1"]}
    online: {description: The CPUs that are online., type: str, sample: "0-1"}
    offline: {description: The CPUs that are offline., type: str, sample: ""}
    memory: {description: Bytes of memory., type: int, sample: 16508993536}
    caches:
      description: Each cache with its size, how many CPUs share it, and which, if they are several cores.
      type: list
      elements: dict
    nics:
      description: Each interface with its device, node, driver and queues; whether it is up, or the default route.
      type: list
      elements: dict
    disks:
      description:
        - Each disk with its kind, node and device, and what a stacked one is made of. Outside check mode only with the
          callback P(nearmetal.ec2.fleet#callback), which draws them, or where a concern plans disks.
      type: list
      elements: dict
# End of the generated part
# Generated by `make generate` from dev/generate/returns/contract.yml
msg:
  description: One line, what was done or would be done.
  type: str
  returned: always
  sample: "clocksource: hpet → tsc, persisted, no reboot"
actions:
  description: The changes of this run, in order; in check mode, the changes that a real run would make.
  type: list
  elements: dict
  returned: unless planning failed
  contains:
    concern: {description: The concern to which the change belongs., type: str}
    knob: {description: The knob; most knobs have the name of the option that sets them., type: str}
    what: {description: "The kind of setting, such as V(clock.current) or V(sysctl).", type: str, sample: clock.current}
    where: {description: "The place, such as a CPU, a device or a file; empty when there is only one.", type: str}
    before: {description: The value found; null when absent., type: raw}
    after: {description: The value set; null when removed., type: raw}
    scope: {description: "V(runtime) applies until the next boot, V(boot) from the next boot on.", type: str}
    disruptive: {description: Whether it may interrupt traffic or a service., type: bool}
    reversible:
      description: "How it can be taken back: V(now) while the host runs, V(by_reboot) by a reboot, V(no) not at all."
      type: str
    wanted_by: {description: "V(user), V(workload), or V(auto) when the value was left to the collection.", type: str}
    reason: {description: Why the setting is changed., type: str}
    reference: {description: The source of the reason., type: str}
findings:
  description: One statement per knob, or per knob and place.
  type: list
  elements: dict
  returned: unless planning failed
  contains:
    concern: {description: The concern to which the knob belongs., type: str}
    knob: {description: "The knob, or the check of a concern that changes nothing.", type: str}
    where: {description: The place; empty when there is only one., type: str}
    status:
      description:
        - One of V(ok), V(would_change), V(changed), V(needs_reboot), V(needs_restart), V(not_applicable), V(refused),
          V(unchangeable), V(unknown), V(advice), V(waived).
      type: str
    now: {description: The value that the host has., type: raw}
    wanted: {description: The value that is wanted., type: raw}
    reason: {description: "Why the knob has this status, and what to do.", type: str}
    reference: {description: The source of the reason., type: str}
    gain: {description: "The expected gain, with the source of the figure; empty when not known.", type: str}
    owner:
      description: "Who sets the value today: V(nearmetal.ec2), V(tuned), V(kubelet) or a file; empty when unknown."
      type: str
errors:
  description: Concern → what went wrong. All changes of such a concern were taken back.
  type: dict
  returned: unless planning failed
reboot_required:
  description: Whether something takes effect only at the next boot.
  type: bool
  returned: unless planning failed
reboot_reasons:
  description: What takes effect at the next boot.
  type: list
  elements: str
  returned: unless planning failed
platform:
  description: The kind of host, as in RV(nearmetal.ec2.host_facts#module:ansible_facts.nearmetal.platform).
  type: dict
  returned: unless planning failed
ansible_stats:
  description:
    - What was done, in short, below C(nearmetal.hosts), the host and the module.
    - It has the form of M(ansible.builtin.set_stats), and AWX shows it as an artifact of the job.
  type: dict
  returned: success with Ansible, without C(no_log) and C(async)
# End of the generated part
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("tune")

if __name__ == "__main__":
    main()
