# SPDX-License-Identifier: BSD-3-Clause
"""What backends take: partitions, their outlining and lowering, and why the rest stays out."""
