# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the state modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments `nearmetal.ec2.state`, `.common`, `.selection` and `.notes`."""

    # Options of each module that plans a concern, and of `tune`, and the group in whose module_defaults they can be.
    COMMON = r"""
options:
  allow_not_ec2:
    description:
      - Accept a host that doesn't look like EC2.
      - Such a host counts as virtual or as metal by the hypervisor flag of its CPU alone.
    type: bool
    default: false
  owner_conflict:
    description:
      - What to do with a setting that another owner, such as tuned, kubelet or a later file in C(sysctl.d), also sets.
      - V(refuse) leaves the setting to its owner and names that owner.
      - V(take_over) sets it anyway. The owner's own configuration stays as it is, so the owner will set it again.
    type: str
    choices: [refuse, take_over]
    default: refuse
  instance_type:
    description:
      - The instance type, such as V(t2.large), of a host on Xen, which doesn't know its own type.
      - On a burstable type nothing is pinned, polled or taken offline.
      - With this option M(nearmetal.ec2.kernel_check) compares the driver of a Xen host with what its type offers.
      - A host that knows its type is believed. On Xen, without this option, the metadata service is asked, by IMDSv2
        and for one second at most, and its answer is stored on the host with the wanted values.
    type: str
  strict:
    description:
      - Fail when something is refused. By default a refusal is a finding and the task succeeds.
    type: bool
    default: false
attributes:
  action_group:
    description: Use C(group/nearmetal.ec2.tuning) in C(module_defaults) to set options of all these modules at once.
    support: full
    membership:
      - nearmetal.ec2.tuning
"""

    # What a run of several concerns leaves as it is.
    SELECTION = r"""
options:
  exclude:
    description:
      - Options to leave out, whoever wants them, as C(concern.option), such as V(cpu_power.idle).
      - They are left out for single disks and interfaces too. What an earlier run had set is taken back.
      - Checks of P(nearmetal.ec2.kernel_check#module) and P(nearmetal.ec2.blkfront_check#module) can be left out too,
        such as V(kernel_check.steal), and V(tune.workload), the choice of V(auto).
    type: list
    elements: str
    default: []
  only:
    description:
      - Concerns, or options as C(concern.option), to which the run is limited, such as V(clocksource.source).
      - Everything else stays as earlier runs left it, also what they set for single disks and interfaces. How a concern
        is set, such as C(persist), counts for all of it.
      - For a single change, such as the fix of one finding in a report. It can't be combined with O(prune).
    type: list
    elements: str
    default: []
  waivers:
    description:
      - Options to leave as the host has them, each with a reason and a last day; they are reported as C(waived).
      - After that day the option is managed again, and a finding says so.
    type: list
    elements: dict
    default: []
    suboptions:
      knob:
        description:
          - The option as C(concern.option), a check, such as V(kernel_check.distribution), or V(tune.workload).
        type: str
        required: true
      reason:
        description: The reason, for readers of the report; at most 200 characters.
        type: str
        required: true
      expires:
        description: The last day on which the waiver holds, in UTC, such as V(2027-01-31).
        type: str
        required: true
"""

    # What a module that changes one concern has beside those.
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) applies the options, V(restored) takes back everything that this concern changed.
      - The original values come from the journal on the host.
    type: str
    choices: [present, restored]
    default: present
"""

    # How each of them behaves.
    NOTES = r"""
options: {}
notes:
  - Needs root on the host, in check mode too, because only root may read the journal.
  - Check mode shows exactly what a real run would do. A real run reads each value back, and fails when the kernel did
    not accept it.
  - Original values are kept in C(/var/lib/nearmetal/journal.json) until they are restored.
  - The wanted values are kept in C(/var/lib/nearmetal/wanted.json). For each concern the last run counts.
  - A concern without options of its own takes those of the workload C(base). Where C(base) has none, nothing changes,
    and the message lists the options.
"""
