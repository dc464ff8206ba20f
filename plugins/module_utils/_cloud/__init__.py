# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only the AWS API knows, for many instances at once. PRIVATE to the collection.

`api.py` does every call. The other files are pure: answers → facts, facts and wanted → plan.
"""
