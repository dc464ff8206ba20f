# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the state modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of every state module, of `tune` and of `restore`."""

    # Options of a module that plans one concern.
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) brings the concern to what the options say.
      - V(restored) takes back everything this concern changed, from the journal on the host.
    type: str
    choices: [present, restored]
    default: present
  strict:
    description:
      - Fail when something is refused. Without it a refusal is a finding and the task succeeds.
    type: bool
    default: false
  allow_not_ec2:
    description:
      - Tune a host that doesn't look like EC2.
        It then counts as virtual or as metal by the hypervisor flag of its CPU alone.
    type: bool
    default: false
  owner_conflict:
    description:
      - What to do with a knob that somebody else is configured to set, such as tuned by its active profile, a file in
        C(sysctl.d) that is read later, or kubelet. V(refuse) leaves it to its owner and names it.
      - V(take_over) sets it all the same. The owner isn't changed, and will set it again.
    type: str
    choices: [refuse, take_over]
    default: refuse
  instance_type:
    description:
      - The type of the instance, such as V(t2.large), for a host on Xen, which doesn't know its own. On a burstable
        type nothing is pinned, polled or taken offline.
      - With it M(nearmetal.ec2.kernel_check) compares the driver of a Xen host with what its type offers.
      - A host that says its type itself is believed. On Xen without this option the metadata service is asked.
    type: str
"""

    # How each of them behaves.
    NOTES = r"""
options: {}
notes:
  - Needs root on the host, in check mode too, because the journal is readable by root alone.
  - Check mode shows exactly what an apply would do. An apply looks again, and fails when the kernel did not take a
    value.
  - Originals are kept in C(/var/lib/nearmetal/journal.json) until they are restored.
  - What was wanted is kept in C(/var/lib/nearmetal/wanted.json). Per concern the last run counts.
  - Without options of its own, a concern has those of the workload C(base); where C(base) has none, nothing is changed
    and the message says which options there are.
"""
