# SPDX-License-Identifier: BSD-3-Clause
"""Passes that leave less to compute, to move or to store."""
