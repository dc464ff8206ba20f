# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree of functions that a host sent, and of two trees one. PRIVATE to the collection."""

from __future__ import annotations

import base64
import zlib
from typing import Any

from ...module_utils._error import NearmetalError
from ...module_utils._parse import json_text
from ...module_utils._profile.folding import Tree, tree_of

_MOST_BYTES = 32 * 1024 * 1024  # of the tree as JSON: twice the largest


def unpacked(text: Any) -> Tree:
    """The tree out of a host's result. Raises NearmetalError for what no host of this collection sends."""
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(base64.b64decode(str(text), validate=True), _MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise ValueError("too large")
        return tree_of(json_text.parse(plain.decode()))
    except (ValueError, zlib.error) as error:
        raise NearmetalError(f"the host sent stacks of another form ({error}): its profile isn't drawn") from None
