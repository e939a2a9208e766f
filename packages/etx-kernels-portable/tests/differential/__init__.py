# SPDX-License-Identifier: BSD-3-Clause
"""Random legal and odd arguments: what a kernel computes against what eager computes."""
