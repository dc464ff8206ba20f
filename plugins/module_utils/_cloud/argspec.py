# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that all cloud modules share, as doc_fragments/aws.py documents them. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict

# Instances, or hosts of a play: more than any account has.
MANY: Dict[str, Any] = {"type": "list", "elements": "str", "entries": 100_000}


def aws_options() -> Dict[str, Any]:
    """Where to ask, as whom, and for how long."""
    return {
        "regions": {"type": "list", "elements": "str"},
        "profile": {"type": "str"},
        "assume_roles": {"type": "dict"},
        "timeout": {"type": "int", "default": 60},
    }


def instance_options() -> Dict[str, Any]:
    """`aws_options` and which instances to ask for."""
    return {
        **aws_options(),
        "instance_ids": MANY,
        "filters": {"type": "dict"},
    }


def changing_options() -> Dict[str, Any]:
    """`instance_options` and what all modules that change something have."""
    return {
        **instance_options(),
        "unconfirmed": {**MANY, "default": []},
        "strict": {"type": "bool", "default": False},
    }


# How the options of `instance_options` exclude each other, for AnsibleModule.
INSTANCES: Dict[str, Any] = {
    "mutually_exclusive": [("instance_ids", "filters")],
    "required_one_of": [("instance_ids", "filters")],
}
