#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: capture
short_description: Capture what a plan needs to know of a host, to plan without the host
version_added: 0.1.0
description:
  - Returns what C(nearmetal plan --from) needs to plan this host elsewhere, for a bug report or a review.
  - Only listed paths are read, and of each only lines and words of a known form. A capture holds no serial number, no
    hardware or network address, no instance id, no comment, no environment of a service and no unknown kernel argument.
  - The playbook C(nearmetal.ec2.capture) writes one file per host on the controller.
options: {}
extends_documentation_fragment:
  - nearmetal.ec2.attributes.check
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Capture the host
  nearmetal.ec2.capture:
  become: true
  register: captured

- name: Keep it on the controller
  ansible.builtin.copy:
    content: "{{ captured.capture | to_json }}"
    dest: "{{ inventory_hostname }}.json"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
capture:
  description: The capture, which C(nearmetal plan --from) reads. Its format belongs to one version of nearmetal.
  type: dict
  returned: success
msg:
  description: One line, how many files were read.
  type: str
  returned: always
  sample: 312 files of this host
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("capture")

if __name__ == "__main__":
    main()
