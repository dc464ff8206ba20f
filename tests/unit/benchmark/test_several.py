# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of several clients as one result."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._benchmark.several import merged


def answer(rate: float, p99: float, **more: Any) -> Dict[str, Any]:
    metrics = [
        {"name": "get", "value": rate, "unit": "1/s", "better": "larger"},
        {"name": "get_p99", "value": p99, "unit": "ms", "better": "smaller"},
    ]
    return {
        "metrics": metrics,
        "details": {"client_on": "a host of its own"},
        "changed": False,
        "span": [10.0, 20.0],
        **more,
    }


def test_the_result_has_the_sum_and_what_each_client_measured() -> None:
    found = merged("key_value", ["client-1", "client-2"], [answer(10.0, 3.0), answer(20.0, 7.0)])
    assert [metric["value"] for metric in found["metrics"]] == [30.0, 7.0]
    assert found["msg"] == (
        "key_value: get 30 1/s, get_p99 7 ms (client_on a host of its own, clients 2, of_the_worst_client get_p99)"
    )
    assert found["clients"]["client-2"]["metrics"][1]["value"] == 7.0


@pytest.mark.parametrize(
    "second", [{"failed": True, "msg": "wrk had 3 errors"}, {"unreachable": True, "msg": "wrk had 3 errors"}]
)
def test_a_client_that_fails_is_named(second: Dict[str, Any]) -> None:
    with pytest.raises(NearmetalError, match=r"^the load failed on client-2: wrk had 3 errors$"):
        merged("web", ["client-1", "client-2"], [{}, second])
