# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apache Spark, of which Cloudera asks what it asks of Hadoop. PRIVATE to the collection."""

from __future__ import annotations

from . import hadoop

PROGRAM = hadoop.PROGRAM._replace(title="Apache Spark", processes=("spark",))
