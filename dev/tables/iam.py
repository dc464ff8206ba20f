# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/iam: the least permissions of each cloud module, and the page about them.

    PYTHONPATH=.ansible/collections python -m dev.tables.iam            writes
    PYTHONPATH=.ansible/collections python -m dev.tables.iam --check    names what is stale

A test runs every module against the fake endpoint, and compares these tables with the calls of the modules.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.attach.facts import TAG as MADE_FOR
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops.stop_mark import TAG

from dev import ROOT

FOLDER = ROOT / "docs" / "iam"
_INSTANCES = ("ec2:DescribeInstances", "ec2:DescribeInstanceTypes")
_STATUS = ("ec2:DescribeInstanceStatus", "ec2:DescribeSpotInstanceRequests")
READ: Dict[str, Tuple[str, ...]] = {
    "cpu_credits": (*_INSTANCES, "ec2:DescribeInstanceCreditSpecifications", "cloudwatch:GetMetricData"),
    "ebs": (*_INSTANCES, "ec2:DescribeVolumes", "cloudwatch:GetMetricData"),
    "enhanced_networking": (*_INSTANCES, *_STATUS),
    "instance_info": (*_INSTANCES, *_STATUS),
    "instance_type_info": ("ec2:DescribeInstanceTypes",),
    "network_interfaces": _INSTANCES,
    "placement": (*_INSTANCES, "ec2:DescribePlacementGroups"),
    "sizing": (*_INSTANCES, "ec2:DescribeVolumes", "cloudwatch:GetMetricData", "pricing:GetProducts"),
}
# What a module needs in addition when it is to change something: reads, and writes to instances.
CHANGE: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...]]] = {
    "cpu_credits": ((*_STATUS, "cloudwatch:DescribeAlarms"), ("ec2:ModifyInstanceCreditSpecification",)),
    "enhanced_networking": ((), ("ec2:ModifyInstanceAttribute", "ec2:StartInstances", "ec2:StopInstances")),
    "network_interfaces": (
        (*_STATUS, "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
        ("ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"),
    ),
}
# Modules that write a tag before they stop an instance.
TAGGING = ("enhanced_networking",)
# Modules that set alarms, and how their names begin by default.
ALARMING = ("cpu_credits",)
ALARMS = "nearmetal-cpu-credits"
# Modules that make network interfaces.
ATTACHING = ("network_interfaces",)
NOTES = {
    "cpu_credits": "`cloudwatch:GetMetricData` only with `metrics: true`",
    "ebs": "`cloudwatch:GetMetricData` only with `metrics: true`",
    "instance_type_info": "only with `source: api`; the table needs nothing",
    "sizing": "nothing without instances; `cloudwatch:GetMetricData` only with `metrics: true`, and "
    "`pricing:GetProducts` only with `ask_prices: true`",
}
CHANGE_NOTES = {
    "cpu_credits": "the statement `Alarm` only for `alarm_percent`; with an `alarm_name` of yours, write it there"
}
PAGE = """\
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Written by `python -m dev.tables.iam`: do not edit. -->
# Permissions of the cloud modules

One policy per module, with nothing that the module does not call. A module that can change something has a second
policy for that; without it, it only reads. Reads name `*`, because most of them know no resources. The writes are
limited to instances, to the alarms of the collection, and to network interfaces with its tag
`{made_for}`; narrow them further by a condition on a tag of yours. A module that stops instances may
write and delete one tag, `{tag}`, and no other. The tag remembers that an instance ran ([the cloud
side](../cloud.md#what-is-remembered-while-an-instance-is-stopped)); without it, nothing is stopped. In GovCloud and
China the ARN begins with another partition than `aws`.

Without `ec2:DescribeInstanceTypes` a module falls back to the table in the collection and says so in `types_from`.

| module | policy | note |
|---|---|---|
{rows}
Several accounts (`assume_roles`): give each role the policies of the modules you run, and the credentials of the
controller `sts:AssumeRole` on these roles.
"""


def policy(
    reads: "Tuple[str, ...]",
    writes: "Tuple[str, ...]" = (),
    tagging: bool = False,
    alarming: bool = False,
    attaching: bool = False,
) -> Dict[str, Any]:
    """A policy document."""
    statements: List[Dict[str, Any]] = [
        {"Sid": "Read", "Effect": "Allow", "Action": sorted(set(reads)), "Resource": "*"},
    ]
    if writes:
        statements.append(
            {"Sid": "Change", "Effect": "Allow", "Action": sorted(writes), "Resource": "arn:aws:ec2:*:*:instance/*"}
        )
    if alarming:
        statements.append(
            {
                "Sid": "Alarm",
                "Effect": "Allow",
                "Action": ["cloudwatch:DeleteAlarms", "cloudwatch:PutMetricAlarm"],
                "Resource": f"arn:aws:cloudwatch:*:*:alarm:{ALARMS}-*",
            }
        )
    if tagging:
        # Null: a request without keys would fit any list of keys, and deletes all tags.
        condition = {"ForAllValues:StringEquals": {"aws:TagKeys": [TAG]}, "Null": {"aws:TagKeys": "false"}}
        statements.append(
            {
                "Sid": "Remember",
                "Effect": "Allow",
                "Action": ["ec2:CreateTags", "ec2:DeleteTags"],
                "Resource": "arn:aws:ec2:*:*:instance/*",
                "Condition": condition,
            }
        )
    if attaching:
        statements += _interfaces(writes)
    return {"Version": "2012-10-17", "Statement": statements}


def _interfaces(writes: "Tuple[str, ...]") -> List[Dict[str, Any]]:
    """Statements to create interfaces, and to change those that have our tag."""
    parts = ("network-interface", "security-group", "subnet")
    interfaces = "arn:aws:ec2:*:*:network-interface/*"
    return [
        {
            "Sid": "Create",
            "Effect": "Allow",
            "Action": ["ec2:CreateNetworkInterface"],
            "Resource": [f"arn:aws:ec2:*:*:{part}/*" for part in parts],
        },
        {
            "Sid": "TagNew",
            "Effect": "Allow",
            "Action": ["ec2:CreateTags"],
            "Resource": interfaces,
            "Condition": {"StringEquals": {"ec2:CreateAction": "CreateNetworkInterface"}},
        },
        {
            "Sid": "ChangeOurs",
            "Effect": "Allow",
            "Action": sorted((*writes, "ec2:DeleteNetworkInterface")),
            "Resource": interfaces,
            "Condition": {"Null": {f"aws:ResourceTag/{MADE_FOR}": "false"}},
        },
    ]


def texts() -> Dict[str, str]:
    """File name → the text that the file must have."""
    files, rows = {}, []
    for module, reads in READ.items():
        files[f"{module}.json"] = json.dumps(policy(reads), indent=2) + "\n"
        rows.append(f"| `{module}` | [read]({module}.json) | {NOTES.get(module, '')} |\n")
        if module in CHANGE:
            further_reads, writes = CHANGE[module]
            change = policy(
                (*reads, *further_reads), writes, module in TAGGING, module in ALARMING, module in ATTACHING
            )
            files[f"{module}-change.json"] = json.dumps(change, indent=2) + "\n"
            note = CHANGE_NOTES.get(module, "")
            rows.append(f"| `{module}` | [read and change]({module}-change.json) | {note} |\n")
    files["README.md"] = PAGE.format(rows="".join(rows), tag=TAG, made_for=MADE_FOR)
    return files


def main() -> int:
    """Write what is stale, or with --check print it and return 1."""
    parser = argparse.ArgumentParser("python -m dev.tables.iam", description="Write docs/iam again.")
    parser.add_argument("--check", action="store_true", help="only name what is stale")
    parsed = parser.parse_args()
    stale = [
        name
        for name, text in texts().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]
    if parsed.check:
        for name in stale:
            print(f"docs/iam/{name} is stale; run: python -m dev.tables.iam")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(texts()[name], encoding="utf-8")
        print(f"wrote docs/iam/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
