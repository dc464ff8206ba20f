# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
from typing import Any

class ConnectionError(Exception): ...

def open_url(url: str, **arguments: Any) -> Any: ...
