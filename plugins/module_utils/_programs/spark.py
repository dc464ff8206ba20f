# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apache Spark, of which Cloudera asks what it asks of Hadoop. PRIVATE to the collection."""

from __future__ import annotations

from . import hadoop

PROGRAM = hadoop.PROGRAM._replace(title="Apache Spark", processes=("spark",))
