# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a tuning helped: order, guards, evidence and verdict as functions of a record. PRIVATE to the collection.

Pure: nothing in this package reads a clock, a file or a host. `record.py` says what the caller writes down,
`step.py` what is to be done next, `verdict.py` what came of it.
"""
