# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation of all cloud modules shares."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments `nearmetal.ec2.aws`, `.instances`, `.hosts`, `.info` and `.changes`."""

    DOCUMENTATION = r"""
options:
  regions:
    description:
      - The regions to ask, in this order.
      - An instance that was found in one region is not looked for in the next.
      - If this option is left out, boto3 decides (E(AWS_DEFAULT_REGION), or the profile's region).
    type: list
    elements: str
  profile:
    description: A profile of the AWS configuration files, for boto3's standard chain of credentials.
    type: str
  assume_roles:
    description:
      - Several accounts in one run, as a mapping from a name that you choose to the role to assume there.
      - A role is its ARN, or a mapping with C(role_arn) and C(external_id).
      - If this option is left out, only the account of the credentials themselves is asked.
    type: dict
  timeout:
    description:
      - Seconds for all requests before the first change.
      - An endpoint that hasn't answered by then is given up. A change that has begun is always finished, so that no
        instance stays stopped.
    type: int
    default: 60
attributes:
  action_group:
    support: full
    description: Set O(regions), O(profile) and the like once, with C(group/nearmetal.ec2.cloud) in C(module_defaults).
    membership:
      - nearmetal.ec2.cloud
requirements:
  - boto3 on the controller
notes:
  - Runs on the controller. Delegate the task to C(localhost) and run it once, as one call serves all hosts of the play.
  - Credentials come from boto3's standard chain only. There is no option for a key.
  - The permissions that each module needs are in C(docs/iam/) of the collection, one policy per module.
"""

    INSTANCES = r"""
options:
  instance_ids:
    description:
      - The ids of the instances.
      - At most 200 ids go into one request.
    type: list
    elements: str
  filters:
    description:
      - Choose instances by filters of C(DescribeInstances) instead, such as C(tag:workload) with the value V(cache).
      - Values are text or lists of text. An empty mapping means all instances.
      - Mutually exclusive with O(instance_ids).
    type: dict
"""

    INFO = r"""
attributes:
  check_mode:
    support: full
    description: Changes nothing.
  diff_mode:
    support: none
    description: Changes nothing.
  idempotent:
    support: full
    description: Changes nothing.
"""

    CHANGES = r"""
options:
  unconfirmed:
    description:
      - Instances that are examined and never changed, because it isn't certain which host they are.
      - The roles fill it from P(nearmetal.ec2.unconfirmed_ids#filter).
    type: list
    elements: str
    default: []
  strict:
    description: Fail, and change nothing, when something is refused.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Check mode shows exactly what a real run would change.
  diff_mode:
    support: full
    description: Diff mode shows the attributes of each instance before and after.
  idempotent:
    support: full
    description: A second run changes nothing.
"""
