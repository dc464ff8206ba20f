#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove with measurements that a tuning helps. The controller's side is the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: prove
short_description: Measure whether a tuning helps this host, and keep it only then
version_added: 0.1.0
description:
  - Compares the host as it is without nearmetal (untuned) with what M(nearmetal.ec2.tune) would make of it (tuned),
    under your own load. The states are measured in pairs, and a seeded coin decides which state of a pair comes first.
  - The verdict is C(better), C(worse), C(same), C(unclear), C(capped), C(not_quiet) or C(unsafe). If O(keep)
    allows it, the tuning is kept as by M(nearmetal.ec2.tune); otherwise the host is left exactly as it was before.
  - Only settings that take effect at once on a running system are compared. Others, such as kernel arguments and
    C(network_stack.somaxconn), are listed, and aren't kept with the tuning. O(reboot) compares most of them, too.
  - Values of a workload that a driver refuses are left out and listed too; they are written once to find them.
  - An interrupted run takes the host back. If the run is killed, a timer on the host does it after O(abandon_after).
options:
  command:
    description:
      - The load of one measurement, for C(/bin/sh). Unless O(timed) is set, it prints figures, one per line, as
        C(name value [unit] smaller|larger), and the deciding figure first. The last word says what is better.
      - It must do the same work each time. A command that takes longer than three times O(seconds) plus 30 s has
        failed.
      - It must not contain a secret. It is printed, and appears in the record, the reports and the host's log.
      - This or O(benchmark) is required to prove.
    type: str
  benchmark:
    description: A ready benchmark of M(nearmetal.ec2.benchmark), which takes O(seconds), in place of O(command).
    type: str
    choices: [clock, disk, key_value, memory, latency, network, web, cache, unixbench, ebizzy]
  benchmark_options:
    description: Options of the benchmark. With C(part=client), C(network) runs on the client host of the load.
    type: dict
    default: {}
  timed:
    description:
      - Whether the time that the command takes is the figure. Its output isn't read then.
      - If the clock source is compared and the load runs on the host itself, the host's real-time clock measures that
        time, because the other clocks are being compared. Each measurement then takes up to 2 s longer.
      - Without it a command that prints nothing has failed, such as a pipe whose first program can't reach a server.
    type: bool
    default: false
  load_on:
    description:
      - Where the load runs, V(host), V(controller), or clients, which are other hosts of the inventory, by their names.
        Several are one load, whose rates are added, and whose answers' times are counted together; of any other figure
        the worst client's counts.
      - On the host it runs as root, on the controller as the user that runs Ansible, and on a client as the user of
        Ansible's connection to it, or as root if the client has the variable C(ansible_become).
    type: list
    elements: str
    default: [host]
  programs:
    description:
      - Programs that already run and serve the load, such as V(redis-server), named as in C(/proc/PID/comm). Any other
        program that uses more than 5 % of the CPU time makes a measurement void. What the command starts needs no name,
        and what runs here anyway, without serving the load, belongs into O(tolerate).
      - This rule applies where the load runs, on the host itself or on a client. A CPU limit that throttled one of
        these programs makes a measurement void wherever the load runs.
    type: list
    elements: str
    default: []
  tolerate:
    description: Programs that run here all the time and don't serve the load, such as an agent of the monitoring. The
      CPU time that they use makes no measurement void, and their end means nothing.
    type: list
    elements: str
    default: []
  wait:
    description: How many seconds the run may wait in all, after what other programs made void, until the host is quiet
      again, 0 to 86400. Then it goes on nevertheless.
    type: int
    default: 300
  health:
    description: A command for C(/bin/sh) that exits with 0 within 10 s if the host does its work, before the first
      switch, and after each one and O(settle). If it fails, the run ends at once as C(unsafe), and the host is taken
      back. If all processes of one of O(programs) ended during a switch, the measurement is void, and C(unsafe) if that
      recurs when tuned, or if the load fails next, and never happens when untuned.
    type: str
    default: ""
  restart:
    description: Units such as V(redis-server.service), or a command for C(/bin/sh) of at most 120 s, which start what
      serves the load anew after each switch, and at the end. So what a program takes over at its start is tested too.
      If it fails, the host isn't healthy.
    type: str
    default: ""
  seconds: {description: "How long one measurement takes, 0.1 to 3600 s, about.", type: float, default: 10}
  settle: {description: "Seconds between a switch and the load, 0 to 600.", type: float, default: 10}
  pairs: {description: "The largest number of pairs, 6 to 200, not counting repeated pairs.", type: int, default: 40}
  effect: {description: The change in percent that you would like to see. Only the forecast of the number of pairs
      depends on it., type: float, default: 5}
  margin: {description: A change below this percentage counts as the same., type: float, default: 2}
  primary: {description: "The name of the deciding figure, by default the first. The other figures guard against
      harm.", type: str, default: ""}
  guard:
    description: The loss in percent of each further figure, by its name, that has to be excluded before the tuning is
      kept, 0.1 to 100, or 0 for none. For a figure that isn't named it is 5, and its estimate must be above O(margin).
    type: dict
    default: {}
  keep:
    description: Which verdicts keep the tuning. With V(better) only that verdict does, with V(not_worse) also C(same),
      and C(unclear) if a loss of O(margin) is excluded, and of each further figure by O(guard).
    type: str
    choices: [better, not_worse]
    default: better
  soak:
    description: The largest number of loads in stays, 0 to 2000. Unless they show the gain too, and exclude that the
      tuning makes loads fail, nothing is kept. V(0) keeps without them.
    type: int
    default: 1000
  burn_in: {description: "How many loads of a stay, or after a reboot, don't count, 1 to 40. What lasts longer isn't
      noticed.", type: int, default: 15}
  several:
    description: How the map at the end of a play combines the evidence of several hosts. V(average) is always valid;
      V(multiply) shows more, but is valid only if the hosts share no load and no disturbance.
    type: str
    choices: [average, multiply]
    default: average
  each:
    description: Whether to find out which concerns made a tuning C(better). For each of several, the whole tuning is
      compared with the tuning without it, in up to O(pairs) pairs. The tuning is still kept or taken back as a whole.
    type: bool
    default: false
  reboot:
    description: Whether settings that need a reboot are compared too, with a reboot before each measurement. If the
      controller is lost, the host takes everything back and reboots once more. Without this option nothing is rebooted.
      O(against) and O(each) aren't possible with it.
    type: bool
    default: false
  reboot_within: {description: "Seconds in which the host must be back after a reboot, 60 to 3600; otherwise the run
      ends.", type: int, default: 600}
  abandon_after:
    description:
      - Seconds, up to 86400, after which the host takes the tuning back by itself if the controller asks for no step.
        V(0) is for a host without systemd, which stays in the state in which a killed controller left it.
      - The minimum is the longest time of one measurement, O(settle) + 3 × O(seconds) + 60, or 180 with O(reboot).
    type: int
    default: 900
  seed: {description: "Seed of the random order, to repeat that of an earlier run; random by default.", type: int}
  only:
    description:
      - Settings to compare, as C(concern.option), such as V(clocksource.source); by default all settings.
      - Other settings stay as they are, so the host is taken back whatever the verdict. Use M(nearmetal.ec2.tune) to
        keep what is better.
    type: list
    elements: str
    default: []
  resume:
    description: The record of an earlier run, to continue that run. The command, the programs and all settings come
      from the record; the tuning must lead to the same values, and the host have the same untuned values and kernel.
    type: str
    default: ""
  fail_on:
    description: The verdicts that let the task fail, after the host was left as they say, so that C(ansible-playbook)
      ends with another exit status than 0. Whatever is named here, C(unsafe) on one host ends the runs of all other
      hosts of the task at their next measurement, and they are taken back.
    type: list
    elements: str
    choices: [better, worse, same, unclear, capped, not_quiet, unsafe]
    default: []
  profile:
    description: Whether to record, in 16 further pairs of loads after the verdict, in which functions the host spends
      its time in both states, and to draw where they differ. Needs C(perf), the load on the host, and no O(reboot).
    type: bool
    default: false
  at_knee: {description: "The rate that all loads of V(web), V(key_value) or V(cache) offer, in percent of the knee of
      the untuned host, which is found first; the late answers decide then. With 0 as much is asked as gets answered.",
      type: int, default: 0}
  tune: {description: "The tuning that is proven, as options of M(nearmetal.ec2.tune).", type: dict, default: {}}
  against:
    description:
      - Another tuning, as options of M(nearmetal.ec2.tune), such as C(workload) and C(concerns), with which the tuning
        is compared in place of the untuned host. Workloads and concerns that it leaves out aren't wanted; all other
        options, such as C(allow_not_ec2), come from the tuning under test.
      - If the tuning isn't kept, the host is left as it was before, with neither of the two tunings.
    type: dict
    default: {}
  step:
    description: The step that the action plugin asks for. V(back), by hand, ends an experiment that was left behind.
    type: str
    choices: [plan, begin, switch, measure, load, profile, look, back, keep]
    default: back
  run: {description: The run to which a step belongs. The action plugin sets it., type: str, default: ""}
  state: {description: That of a step; the plugin sets it., type: str, choices: [untuned, tuned], default: untuned}
  without: {description: The concern of O(each) that the state lacks; the plugin sets it., type: str, default: ""}
  start_at: {description: When a client begins in seconds since 1970; the plugin sets it., type: float, default: 0.0}
  stays: {description: Whether the host is in that state already; the plugin sets it., type: bool, default: false}
attributes:
  check_mode:
    description: Shows which settings would be compared, and how long that may take; nothing is switched or run.
    support: full
  diff_mode: {description: What differs between the states is returned in all modes., support: none}
  platform: {description: The systems it works on., support: full, platforms: linux}
notes:
  - Needs root on the host, and systemd for the timer.
  - The record of a run and its report, as JSON, Markdown and a page, are in C(nearmetal-report/prove) in the working
    directory, or in C(NEARMETAL_REPORT_DIRECTORY).
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Does the tuning for Redis help Redis?
  nearmetal.ec2.prove:
    command: redis-benchmark -t get -P 16 --csv | awk -F '","' 'NR == 2 {print "get " $2 " requests/s larger"}'
    programs: [redis-server]
    seconds: 3
    tune: {workload: in_memory_database}
  become: true

- name: Does the clock source matter to the cost of a clock read?
  nearmetal.ec2.prove:
    benchmark: clock
    only: [clocksource.source]
    tune: {concerns: {clocksource: {source: tsc}}}
  become: true
"""

RETURN = r"""
msg:
  description: One line, the verdict and what was done.
  type: str
  returned: always
  sample: "better, kept: requests (larger is better) +7.4 % (+3.1 to +11.9), evidence 61:1 (20:1 is needed)"
verdict:
  description: The verdict with its reasons, figures and intervals. There is none if the states don't differ.
  type: dict
  returned: when the run came to a verdict
kept: {description: Whether the tuning was kept., type: bool, returned: success}
tuned_before:
  description: Whether nearmetal had tuned the host before the run. That tuning comes back if nothing was kept.
  type: bool
  returned: when the run came to a verdict
reboot_required:
  description: Whether the tuning that was kept has settings that need a reboot.
  type: bool
  returned: when the run came to a verdict
tested:
  description: The settings in which the two states differ.
  type: list
  elements: str
  returned: when the run began, and in check mode
wanted:
  description: What the tuning sets, for each setting in which the two states differ.
  type: dict
  returned: when the run came to a verdict
load: {description: The command that was measured., type: str, returned: on a verdict}
against:
  description: The tuning that was compared in place of the untuned host, in a few words; empty without one.
  type: str
  returned: when the run came to a verdict
untested:
  description: The settings of the tuning that were not compared, each with the reason.
  type: list
  elements: str
  returned: when the run began, and in check mode
written: {description: The settings of RV(untested) that were kept., type: list, elements: str, returned: on a verdict}
left_out:
  description: The settings that were not compared, and aren't written even if the tuning is kept, each with the reason.
  type: list
  elements: str
  returned: when the run came to a verdict
set_by_others:
  description: What somebody else set during the run and the restore left alone, with the value from before the run.
  type: list
  elements: str
  returned: when the run came to a verdict
sha256: {description: "The digest of RV(record), which is in all reports.", type: str, returned: on a verdict}
record:
  description: The file with every measurement, from which the verdict follows.
  type: str
  returned: when the run began
reports:
  description: The files with the report; none with C(no_log), which writes only the record.
  type: list
  elements: str
  returned: when the run came to a verdict
profile: {description: "The C(page), the functions that C(moved), with shares and evidence, and C(advice) on those that
  the tuning made more, such as a lock.", type: dict,
  returned: on a verdict with O(profile)}
ansible_stats:
  description:
    - The verdict in short, below C(nearmetal.hosts), the host and C(prove).
    - It has the form of M(ansible.builtin.set_stats), and AWX shows it as an artifact of the job.
  type: dict
  returned: success without C(no_log)
answer: {description: What the step returned., type: dict, returned: when a single step ran}
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("prove")

if __name__ == "__main__":
    main()
