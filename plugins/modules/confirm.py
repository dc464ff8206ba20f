#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: confirm
short_description: Tell a host that it can still be reached after a network change
version_added: 0.1.0
description:
  - P(nearmetal.ec2.tune#module) with O(nearmetal.ec2.tune#module:confirm_within) arms a timer on the host before a
    change that could cut it off. This module disarms it. Run it over a new connection, after C(reset_connection).
  - The task of P(nearmetal.ec2.tune#module) does so by itself.
options: {}
extends_documentation_fragment:
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Open a new connection
  ansible.builtin.meta: reset_connection

- name: Keep the network as it is now
  nearmetal.ec2.confirm:
"""

RETURN = r"""
msg:
  description: One line, what was done or would be done.
  type: str
  returned: always
  sample: confirmed
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("confirm")

if __name__ == "__main__":
    main()
