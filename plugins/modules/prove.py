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
    under a load of yours. The states are measured in pairs, and a seeded coin says which state of a pair is first.
  - The verdict is C(better), C(worse), C(same), C(unclear), C(capped), C(not_quiet) or C(unsafe). What O(keep) says is
    kept as M(nearmetal.ec2.tune) would; otherwise the host is left exactly as it was before.
  - Only what runs is switched meanwhile. Settings that need a reboot are left out and listed; where the tuning is kept,
    they are written with it, untested.
  - What a driver refuses of a workload is left out and listed too. As no driver says it beforehand, such values are
    written once when the run begins.
  - A run that is interrupted takes the host back. If it is killed, a timer on the host does, after O(abandon_after).
options:
  command:
    description:
      - The load of one measurement, for C(/bin/sh). It prints figures, one a line, as
        C(name value [unit] [smaller|larger]), with the one that decides first, unless O(timed) is set. Larger is better
        where a line doesn't say; a time, in s, ms, us or ns, must say.
      - It must do the same work each time. One that takes longer than three times O(seconds) and 30 s has failed.
      - It must have no secret in it. It is printed, stands in the record and the reports, and is in the host's log.
      - Required to prove.
    type: str
  timed:
    description:
      - Whether the time that the command takes is the figure. What it prints isn't read then.
      - Where the clock source is compared, and the load runs on the host itself, the host's real-time clock times it,
        as the host's other clocks are what is compared. A measurement takes up to 2 s longer then.
      - Without it a command that prints nothing has failed, as where the first program of a pipe can't reach a server.
    type: bool
    default: false
  load_on:
    description:
      - Where the load runs, V(host), on the host itself as root, or V(controller), as the user that runs Ansible.
    type: str
    choices: [host, controller]
    default: host
  programs:
    description:
      - Programs that run already and serve the load, such as V(redis-server), as in C(/proc/PID/comm). Another program
        that uses more than 5 % of the CPU time makes a measurement void.
      - That counts where the load runs on the host itself. A limit of CPU time that held one of them back makes a
        measurement void anywhere.
    type: list
    elements: str
    default: []
  seconds:
    description:
      - How long one measurement takes, 0.1 to 3600 s. The command decides how long it really takes.
    type: float
    default: 10
  settle:
    description:
      - Seconds between a switch and the load, 0 to 600.
    type: float
    default: 10
  pairs:
    description:
      - At most so many pairs, 6 to 200, those that are repeated not counted.
    type: int
    default: 40
  effect:
    description:
      - The change in percent that you would like to see. Only the forecast of how many pairs it takes depends on it.
    type: float
    default: 5
  margin:
    description:
      - A change of less percent counts as the same.
    type: float
    default: 2
  primary:
    description:
      - The figure that decides; by default the first one that the command prints. The others guard against harm.
    type: str
    default: ""
  keep:
    description:
      - Which verdicts keep the tuning, V(better) alone, or with V(not_worse) also C(same), and C(unclear) where a loss
        of O(margin) is excluded.
    type: str
    choices: [better, not_worse]
    default: better
  several:
    description:
      - How the evidence of several hosts of a play is put together in the map at its end. V(average) holds always;
        V(multiply) shows more, where no host's load or disturbance is also another's.
      - Each host has its own coin, verdict and end all the same.
    type: str
    choices: [average, multiply]
    default: average
  each:
    description:
      - Whether a tuning that is C(better) is asked which concern did it. The whole is compared with all of it but one
        concern, one after the other, in up to O(pairs) pairs for each.
      - It is kept or taken back as a whole all the same. Where it differs in one concern alone, nothing is asked.
    type: bool
    default: false
  abandon_after:
    description:
      - Seconds, up to 86400, after which the host takes itself back when the controller asked for no step; V(0) for a
        host without systemd, which then stays in the state in which a killed controller left it.
      - The least is what one measurement may take, O(settle) + 3 × O(seconds) + 60.
    type: int
    default: 900
  seed:
    description:
      - Seed of the coin, to repeat the order of an earlier run; random by default.
    type: int
  only:
    description:
      - Settings to compare, as C(concern.option), such as V(clocksource.source). Whatever else would be tuned stays as
        it is, so the host is taken back whatever the verdict; M(nearmetal.ec2.tune) keeps what is better. By default
        everything takes part.
    type: list
    elements: str
    default: []
  resume:
    description:
      - The record of an earlier run, to go on with it. It has the command, the programs and all settings of that run;
        the tuning has to bring the same values.
    type: str
    default: ""
  tune:
    description:
      - The tuning that is proven, as options of M(nearmetal.ec2.tune), such as C(workload) and C(concerns).
    type: dict
    default: {}
  against:
    description:
      - Another tuning, as options of M(nearmetal.ec2.tune), such as C(workload) and C(concerns), with which the tuning
        is compared in place of the untuned host. What it doesn't say of workloads and concerns it doesn't want; all
        else, such as C(allow_not_ec2), is that of the tuning.
      - What isn't kept leaves the host as it was before, with neither of the two.
    type: dict
    default: {}
  step:
    description:
      - What the action plugin asks of the host. V(back), by hand, ends an experiment that was left behind.
    type: str
    choices: [begin, measure, look, back, keep]
    default: back
  run:
    description:
      - The run to which a step belongs. The action plugin sets it.
    type: str
    default: ""
  state:
    description:
      - The state of a step. The action plugin sets it.
    type: str
    choices: [untuned, tuned]
    default: untuned
  without:
    description:
      - The concern that the untuned state of a step is without, for O(each). The action plugin sets it.
    type: str
    default: ""
attributes:
  check_mode:
    description: There is nothing to measure without switching.
    support: partial
    details: In check mode the task is skipped.
  diff_mode:
    description: What differs between the states is returned in all modes.
    support: none
  platform:
    description: The systems it works on.
    support: full
    platforms: linux
notes:
  - Needs root on the host, and systemd for the timer.
  - The record of a run and its report, as JSON, Markdown and a page, are in C(nearmetal-report/prove) in the working
    directory, or where C(NEARMETAL_REPORT_DIRECTORY) says.
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Does the tuning for Redis help Redis?
  nearmetal.ec2.prove:
    command: >-
      redis-benchmark -t get -n 200000 -P 16 --csv | awk -F '","' 'NR == 2 {print "get " $2 " requests/s"}'
    programs: [redis-server]
    seconds: 3
    tune:
      workload: in_memory_database
  become: true

- name: Does the clock source matter to a program that asks for the time all day?
  nearmetal.ec2.prove:
    command: python3 -c 'import time; [time.time() for _ in range(3000000)]'
    timed: true
    only: [clocksource.source]
    tune:
      concerns:
        clocksource:
          source: tsc
  become: true
"""

RETURN = r"""
msg:
  description: One line, the verdict and what was done.
  type: str
  returned: always
  sample: "better, kept: requests (larger is better) +7.4 % (+3.1 to +11.9), evidence 61:1 (20:1 is needed)"
verdict:
  description: The verdict with its reasons, figures and intervals. Without a difference there is none.
  type: dict
  returned: when the run came to a verdict
kept:
  description: Whether the tuning was kept.
  type: bool
  returned: success
tuned_before:
  description: Whether nearmetal had tuned the host before the run, as it is again where nothing was kept.
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
  returned: when the run began
wanted:
  description: What the tuning sets, for each setting in which the two states differ.
  type: dict
  returned: when the run came to a verdict
load:
  description: The command that was measured.
  type: str
  returned: when the run came to a verdict
against:
  description: The tuning that stood in for the untuned host, in a few words. Empty where the host was untuned.
  type: str
  returned: when the run came to a verdict
untested:
  description: The settings that were left out, each with the reason.
  type: list
  elements: str
  returned: when the run began
record:
  description: The file with every measurement, from which the verdict follows.
  type: str
  returned: when the run began
reports:
  description: The files with the report; none with C(no_log), which leaves the record alone.
  type: list
  elements: str
  returned: when the run came to a verdict
answer:
  description: What a step found.
  type: dict
  returned: by a step
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.edge import HostModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.proving import OPTIONS, do
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

_CHANGES = ("begin", "measure", "back", "keep")


def main(host: WritableHost | None = None) -> None:
    """Do one step on `host`, by default this machine."""
    module = HostModule("prove", OPTIONS)
    step = module.options["step"]
    if module.check_mode:
        module.exit_json(changed=False, skipped=True, msg="there is nothing to measure without switching")
    try:
        answer = do(host or WritableHost(), module.options)
    except NearmetalError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=step in _CHANGES, msg=f"{step}: done", answer=answer)


if __name__ == "__main__":
    main()
