# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instance types ENA Express is possible on, against what the API says of each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional, cast

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_stack.ena import may_use_express


def possible(instance_type: Optional[str], driver: str = "ena") -> bool:
    facts: Any = SimpleNamespace(platform=SimpleNamespace(instance_type=instance_type))
    return may_use_express(facts, cast(Any, SimpleNamespace(driver=driver)))


def test_a_host_says_what_the_api_says_of_its_type() -> None:
    types = offline_types()
    assert sum(kind.ena_srd for kind in types.values()) > 500
    wrong = {name for name, kind in types.items() if possible(name) is not kind.ena_srd}
    assert wrong == {"g6e.16xlarge"}, "the API alone leaves out this size between two that have it"


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        (None, True),
        ("c12gn.large", True),
        ("m9x.24xlarge", True),
        ("m7.huge", False),
        ("c7gn.metal", True),
        ("c7gn.2xlarge", False),
    ],
)
def test_types_of_which_nothing_is_known(instance_type: Optional[str], expected: bool) -> None:
    assert possible(instance_type) is expected
    assert not possible(instance_type, "virtio_net")
