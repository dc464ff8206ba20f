# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that may stop an instance to turn ENA on, and what it leaves at the instance."""

from __future__ import annotations

from typing import Any, Dict, List

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.stops.stop_mark import TAG

from tests.support.aws.fake_aws import FakeAws


def turn_on(run: Any, instance_id: str, **more: Any) -> Dict[str, Any]:
    """A run that may stop the instance."""
    hosts = [{"instance_id": instance_id, "drivers_in_use": ["vif"], "drivers_available": ["ena"]}]
    options = {"instance_ids": [instance_id], "ena": "enabled", "allow_stop": True, "hosts": hosts, **more}
    result: Dict[str, Any] = run("enhanced_networking", **options)
    return result


def tags(aws: FakeAws, instance_id: str) -> List[str]:
    """The values of our tag."""
    return [tag["Value"] for tag in aws.instances[instance_id].get("Tags", ()) if tag["Key"] == TAG]


def state(aws: FakeAws, instance_id: str) -> Any:
    """The state's name."""
    return aws.instances[instance_id]["State"]["Name"]
