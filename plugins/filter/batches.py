# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter batches."""

from __future__ import annotations

import re
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

DOCUMENTATION = """
name: batches
version_added: 0.3.0
author: The nearmetal.ec2 authors (@nearmetal)
short_description: Check the sizes of a play's batches
description:
  - Gives the sizes as they are, and of a text with several, as C(-e tune_serial=1,10%) has it, a list.
  - If one is neither a number of hosts nor a share, it fails with a sentence, where the C(serial) of a play would end
    in a traceback, would take V(5x%) or V(-3) for something else, or V(0) for all hosts at once.
options:
  _input:
    description: A number of hosts, a share of the play such as V(10%), or a list of these.
    type: raw
    required: true
"""
EXAMPLES = """
- name: Tune
  hosts: web
  serial: "{{ tune_serial | default([1, '10%']) | nearmetal.ec2.batches }}"
  roles:
    - nearmetal.ec2.tune
"""
RETURN = """
_value:
  description: The sizes.
  type: raw
"""

_SIZE = re.compile(r"0*[1-9]\d*|(100|[1-9]\d?)%", re.ASCII)


def require_sizes(sizes: Any) -> Any:
    """The sizes of batches as `serial` takes them; AnsibleFilterError if it can't take one of them."""
    if isinstance(sizes, str) and not _SIZE.fullmatch(sizes.strip()):
        listed = [size.strip(" '\"") for size in sizes.strip(" []").split(",")]
        sizes = listed if all(map(_SIZE.fullmatch, listed)) else sizes
    for size in sizes if isinstance(sizes, (list, tuple)) and sizes else [sizes]:
        if isinstance(size, bool) or not isinstance(size, (int, str)) or not _SIZE.fullmatch(str(size).strip()):
            raise AnsibleFilterError(
                f"tune_serial: {size!r} is no size of a batch: give a number of hosts, a share such as 10%, or several"
                " such as 1,10%; 100% is all hosts at once"
            )
    return sizes


class FilterModule:
    def filters(self) -> dict[str, Callable[[Any], Any]]:
        return {"batches": require_sizes}
