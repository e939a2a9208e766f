# SPDX-License-Identifier: BSD-3-Clause
"""From a module to the Edge dialect: capture, decompose, run the passes, verify."""
