#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of an audit: the documentation; the work is done by the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: audit_report
short_description: Write the reports of an audit and fail the run on chosen findings
version_added: 0.1.0
description:
  - Runs on the controller, once for the play, after the hosts have been audited.
  - Writes the reports when the callback P(nearmetal.ec2.fleet#callback) isn't in use; with it the callback writes
    them, because it also sees hosts that could not be reached.
options:
  result:
    description:
      - The names under which each host's results were registered. Their findings are joined per host.
      - A result of M(nearmetal.ec2.network_facts) with a sample shows whether limits of EC2 are hit.
    type: list
    elements: str
    default: [tune_result]
  fail_on:
    description:
      - Fail when any host has a finding with one of these statuses.
      - V(failed) means that a concern ended with an error.
      - The statuses in the variable C(audit_fail_on) of every host of the play are added.
    type: list
    elements: str
    choices:
      - ok
      - would_change
      - changed
      - needs_reboot
      - needs_restart
      - not_applicable
      - refused
      - unchangeable
      - unknown
      - advice
      - waived
      - failed
    default: []
  baseline:
    description:
      - The C(report.json) of an earlier run, to report what has changed since.
      - A relative path starts from the working directory.
      - The variable C(audit_baseline) of any host of the play counts too. The run fails when they differ.
    type: path
  history:
    description:
      - A directory, created when absent, in which each audit keeps how many findings every host had of each status.
      - C(report.html) then shows how these numbers changed, per host and for all, over the last 60 audits.
      - A relative path starts from the working directory.
      - The variable C(audit_history) of any host of the play counts too. The run fails when they differ.
    type: path
  only_check:
    description:
      - Only look for mistakes in the other options, before a host is asked. Nothing is returned or written.
    type: bool
    default: false
  fail:
    description:
      - With V(false) a hit of O(fail_on) doesn't fail this task, but is returned as RV(failure) for a later task.
      - Ansible keeps RV(ansible_stats) only of a task that didn't fail.
    type: bool
    default: true
  failure:
    description: Only fail with this sentence, RV(failure) of an earlier task; do nothing if it is empty.
    type: str
attributes:
  action:
    description: Runs on the controller as a whole.
    support: full
  check_mode:
    description: Changes no host; the reports are written in check mode too.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
  platform:
    description: The systems it works on.
    support: full
    platforms: posix
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Audit as part of your own play
  hosts: all
  gather_facts: false
  tasks:
    - name: Name mistakes in the options before a host is asked
      nearmetal.ec2.audit_report:
        fail_on: [would_change, failed]
        only_check: true
      run_once: true

    - name: Plan, and change nothing
      nearmetal.ec2.tune:
        workload: in_memory_database
      become: true
      check_mode: true
      register: tune_result

    - name: Fail when a host isn't tuned
      nearmetal.ec2.audit_report:
        fail_on: [would_change, failed]
      run_once: true

- name: Audit in AWX, with artifacts of an audit that fails too
  hosts: all
  gather_facts: false
  tasks:
    - name: Plan, and change nothing
      nearmetal.ec2.tune:
        workload: in_memory_database
      become: true
      check_mode: true
      register: tune_result

    - name: Write the reports
      nearmetal.ec2.audit_report:
        fail_on: [would_change, failed]
        fail: false
      run_once: true
      register: report_result

    - name: Fail when a host isn't tuned
      nearmetal.ec2.audit_report:
        failure: "{{ report_result.failure }}"
      run_once: true
"""

RETURN = r"""
fail_on:
  description: The statuses that fail the run.
  type: list
  elements: str
  returned: success without O(only_check), or failure because of them
baseline:
  description: The earlier report that was compared with; empty without one.
  type: str
  returned: success without O(only_check), or failure because of O(fail_on)
msg:
  description: The result in one line; if O(fail_on) found something, what it found.
  type: str
  returned: without the callback P(nearmetal.ec2.fleet#callback), or failure because of O(fail_on)
  sample: 4 settings on 2 of 5 hosts can be tuned better.
ansible_stats:
  description:
    - The verdict and the totals below C(nearmetal), as M(ansible.builtin.set_stats) returns them.
    - AWX shows them as artifacts of the job.
  type: dict
  returned: without the callback P(nearmetal.ec2.fleet#callback)
history:
  description: The directory of earlier audits; empty without one.
  type: str
  returned: success without O(only_check), or failure because of O(fail_on)
hosts:
  description: The hosts that have a finding with a status of O(fail_on).
  type: list
  elements: str
  returned: success without O(only_check), or failure because of O(fail_on)
failure:
  description: What O(fail_on) found, as a sentence; empty when it found nothing.
  type: str
  returned: success without O(only_check), or failure because of O(fail_on)
  sample: "audit_fail_on: 1 finding with a status of would_change on redis-1; see report.json"
findings:
  description: The number of findings with a status of O(fail_on).
  type: int
  returned: success without O(only_check), or failure because of O(fail_on)
written:
  description: The files written; empty when the callback writes them.
  type: list
  elements: str
  returned: success without O(only_check), or failure because of O(fail_on)
  sample: [nearmetal-report/report.json]
"""
