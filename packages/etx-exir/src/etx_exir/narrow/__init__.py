# SPDX-License-Identifier: BSD-3-Clause
"""Weights in half of their bits: which may be stored so, and operators that read them."""
