#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a rollout: the documentation; the work is done by the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout
short_description: Tune a fleet batch by batch, as long as its own metrics allow
version_added: 0.3.0
description:
  - The steps of the playbook C(nearmetal.ec2.rollout). Each is one task, and what it knows is in the record.
  - Hosts are drawn by a seeded coin within their stratum, which is their groups, instance type and zone. Those that
    wait are the controls for those that are tuned.
  - Each host's metrics after its tuning are compared with those before it, and this difference with that of the hosts
    that wait, by a permutation test of the draw, and at each look by evidence that may be looked at at any time.
  - After each batch the rollout goes on, holds, or goes back, which restores what it tuned.
options:
  batches:
    description:
      - How many hosts are tuned when each batch is over, as numbers or as shares of all hosts such as V(10%).
      - Each batch has at least one host. If the last one is less than V(100%), the other hosts stay as they are.
    type: list
    elements: str
    default: ["1", 10%, 30%, 100%]
  metrics:
    description:
      - What must not get worse, a mapping for each metric, with C(name), C(better), which is V(larger) or V(smaller),
        and C(command), C(prometheus) or C(cloudwatch).
      - C(command) is for C(/bin/sh) on the controller, and runs once for each host and look. The last word that it
        prints, of at most 64 KiB, is the value. C({host}) in it stands for the host's name in the inventory, and
        C({address}) for its C(ansible_host).
      - C(prometheus) is a query in PromQL, for the range of each look. In it C({host}) or C({address}) stands for a
        regular expression of several hosts, so it belongs behind C(=~).
      - C(cloudwatch) is a mapping of C(namespace), C(metric), C(dimensions) and C(statistic), by default C(Average). In
        the values of C(dimensions) C({instance_id}) stands for the host's variable C(instance_id), as the inventory of
        C(amazon.aws) has it, beside C({host}) and C({address}).
      - C(margin) is the loss in percent that has to be excluded before the next batch, by default O(margin).
      - Without metrics the guards alone decide.
    type: list
    elements: dict
    default: []
  prometheus:
    description:
      - The server for the metrics with C(prometheus), as C(url), C(label) by which a series names its host, by default
        C(instance), with or without a port, C(user) and C(password_file), or C(token_file), C(ca_file), and C(timeout)
        in seconds, by default 30.
    type: dict
    default: {}
  cloudwatch:
    description:
      - Where CloudWatch is asked for the metrics with C(cloudwatch), as C(regions), C(profile), C(assume_roles) and
        C(timeout), which the cloud modules have too, and C(delay), the seconds after which its values are complete, by
        default 180. It takes the permission C(cloudwatch:GetMetricData), and AWS charges for each metric of each host
        and look.
      - O(interval) is whole minutes then, and 300 for metrics of instances without detailed monitoring.
    type: dict
    default: {}
  margin:
    description: The loss in percent of any metric that has to be excluded before the next batch, 0.1 to 99.
    type: float
    default: 5
  guards:
    description:
      - Limits of the guards, which look at each host before and after its tuning, or V(false) to switch one off.
      - Of V(failed_units), V(oops), V(hung_task), V(nic_reset), V(io_error) and V(oom) none may be new. V(retransmits)
        may rise by 1 percent of the segments, V(softnet_drops) and V(allowances) by 10 a second, and V(steal) by
        5 percent of the CPU time, above the mean since the host's boot.
    type: dict
    default: {}
  health:
    description:
      - A command for C(/bin/sh) that exits with 0 within 10 s if the host does its work. It runs on each host before
        its tuning, and when its batch was watched. A host that isn't healthy before is left out.
    type: str
    default: ""
  before:
    description:
      - Seconds for which the hosts of a batch and those that wait are watched before the batch is tuned, 0 to 86400.
    type: float
    default: 600
  watch:
    description: Seconds for which a batch is watched, 0 to 604800, before it is decided whether the rollout goes on.
    type: float
    default: 600
  watch_at_most:
    description: Seconds after which O(on_unclear) decides if a loss of O(margin) still isn't excluded, 0 to 604800.
    type: float
    default: 1800
  interval:
    description: Seconds between two looks at the metrics, 0.1 to 3600.
    type: float
    default: 60
  on_unclear:
    description: What follows where harm is neither shown nor excluded, V(hold) or V(go_on).
    type: str
    choices: [hold, go_on]
    default: hold
  on_back:
    description: What is restored when the rollout goes back, the V(batch), or V(all) hosts that this rollout tuned.
    type: str
    choices: [batch, all]
    default: batch
  seed:
    description: The seed of the draw. The same seed draws the same hosts in the same order.
    type: int
  resume:
    description:
      - The record of a rollout that was killed or held, to go on with it. Its options are those of the record, but
        O(freeze), O(window) and O(most_unavailable) may be given anew.
      - A batch that was held counts as good then, because somebody has looked at it.
    type: str
    default: ""
  freeze:
    description:
      - A file on the controller. While it exists no further batch is tuned, and the rollout holds. Its first line is
        said as the reason. It is looked for before the batch is watched and right before it is tuned.
    type: str
    default: ""
  window:
    description:
      - When batches may begin, as times such as V(Mon-Thu 09:00-16:00 UTC), of which any will do. The rollout holds
        outside them. The days and the time zone may be left out, which is UTC then.
      - A batch that was tuned within the window is watched, decided and taken back after it, too.
    type: list
    elements: str
    default: []
  most_unavailable:
    description:
      - How many hosts of a batch may be out of reach or unhealthy before it, as a number or share of the batch's hosts
        of each stratum, such as V(10%). If more are, nothing of the batch is tuned, and the rollout holds.
      - Such hosts are left out. By default any number of them may be, but not all hosts of a batch.
      - With hooks no more hosts than that are tuned at once, by default one in a hundred of the batch, and after the
        first failure no further ones.
    type: str
    default: ""
  prove_first:
    description:
      - Whether M(nearmetal.ec2.prove) tunes the hosts of the first batch, by the variables C(prove_…), and keeps what
        is better there. The rollout holds unless it kept all of them, and goes back where one is C(worse) or C(unsafe).
    type: bool
    default: false
  lease:
    description:
      - Seconds after O(watch_at_most), 0 to 2592000, after which a host that nobody has told a decision restores
        itself, as one does that can't be reached when its batch is taken back. V(0) leaves it as it is. A batch whose
        tuning takes longer needs more. It takes systemd and Python 3.7 or later on the host.
      - While a host has a lease, or until the decision, no other rollout tunes it.
    type: float
    default: 86400
  step:
    description: The step to do. The playbook sets it.
    type: str
    choices: [begin, open, look, permit, claim, watch, decide, release, end]
    default: begin
  record:
    description: The record of the step V(begin), for the steps after it.
    type: str
    default: ""
  hooks:
    description: Whether something is done before or after each host, for the step V(open).
    type: bool
    default: false
  judged:
    description: What the step V(watch) found, for the step V(decide).
    type: dict
    default: {}
  hosts:
    description: The hosts that were to be restored, for the step V(end).
    type: list
    elements: str
    default: []
attributes:
  action:
    description: All steps but V(look), V(claim) and V(release) run on the controller.
    support: full
  check_mode:
    description: Shows the batches. Nothing is written or tuned.
    support: full
  diff_mode: {description: Nothing differs., support: none}
  platform: {description: The systems it works on., support: full, platforms: linux}
notes:
  - The record is in C(nearmetal-report/rollout) in the working directory, or in C(NEARMETAL_REPORT_DIRECTORY).
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Draw the batches of a fleet
  nearmetal.ec2.rollout:
    batches: [1, 10%, 100%]
    metrics:
      - name: requests
        better: larger
        command: curl -sf http://{address}:8080/metrics | awk '$1 == "requests_per_second" {print $2}'
  run_once: true
  register: rollout_begun
"""

RETURN = r"""
msg: {description: "What the step did or decided, in one line.", type: str, returned: always}
record: {description: The file of the record., type: str, returned: for the steps V(begin) and V(end)}
order:
  description: The hosts that are left to tune, in the order of the draw.
  type: list
  elements: str
  returned: for the step V(begin)
sizes: {description: The sizes of their batches., type: list, elements: int, returned: for the step V(begin)}
vitals: {description: What a host counts and logs that tells of harm., type: dict, returned: for the step V(look)}
claimed: {description: "Whether the host belongs to this rollout now.", type: bool, returned: for the step V(claim)}
judged: {description: What the metrics say of the batch., type: dict, returned: for the step V(watch)}
decision:
  description: V(go_on), V(hold) or V(back).
  type: str
  returned: for the step V(decide)
reasons: {description: "Why, in sentences.", type: list, elements: str, returned: for the step V(decide)}
figures:
  description: Of each metric its change with its interval.
  type: list
  elements: dict
  returned: for the step V(decide)
back: {description: The hosts to restore., type: list, elements: str, returned: for the step V(decide)}
outcome:
  description: V(done), V(held), V(taken_back), or V(open) when the rollout isn't over.
  type: str
  returned: for the step V(end)
tuned: {description: The hosts that are tuned now., type: list, elements: str, returned: for the step V(end)}
"""
