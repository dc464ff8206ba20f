# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the judgment of a record; exit status 0 if its report agrees, 3 if there is none to compare. PRIVATE."""

from __future__ import annotations

import json
import sys

from ....module_utils._error import NearmetalError
from . import judge

_FOLDER = "nearmetal-report/prove/<host>-<time>-<seed>"

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--json"]
    if len(words) not in (1, 2):
        raise SystemExit(f"usage: judge [--json] {_FOLDER}.jsonl [{_FOLDER}.json]")
    try:
        judged = judge(*words)
    except NearmetalError as error:
        raise SystemExit(f"judge: {error}") from None
    print(json.dumps(judged, indent=1) if "--json" in sys.argv else "\n  ".join(judged["lines"]))
    raise SystemExit(3 if judged["agrees"] and not judged["report"] else not judged["agrees"])
