# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every test shares."""

from __future__ import annotations

import hypothesis

# No deadline for a test: the machines that run them are busy with emulated hosts.
hypothesis.settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
# To look for new counterexamples: pytest --hypothesis-profile=explore
hypothesis.settings.register_profile("explore", deadline=None, max_examples=5000, print_blob=True)
# For seeded faults (dev/mutate.py): only whether a fault is caught, without shrinking its input.
caught = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
hypothesis.settings.register_profile("caught", deadline=None, derandomize=True, phases=caught)
hypothesis.settings.load_profile("project")
