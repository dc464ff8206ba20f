# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes of modules, by Ansible's names."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments `nearmetal.ec2.attributes`, `.facts` and `.check`."""

    # A module that changes a host.
    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Check mode shows what a real run would do, without changing the host.
    support: full
  diff_mode:
    description: Diff mode shows what is changed or would be changed, before and after.
    support: full
  idempotent:
    description: A second run with the same options changes nothing.
    support: full
  platform:
    description: The systems it works on.
    support: full
    platforms: linux
"""

    # A module that returns facts, beside what `check` says.
    FACTS = r"""
attributes:
  facts:
    description: Returns C(ansible_facts).
    support: full
"""

    # A module that only observes.
    CHECK = r"""
attributes:
  check_mode:
    description: Changes nothing, so check mode is like any run.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
  idempotent:
    description: Changes nothing.
    support: full
  platform:
    description: The systems it works on.
    support: full
    platforms: linux
"""
