# SPDX-License-Identifier: BSD-3-Clause
"""Passes that give each thing the one form that passes and kernels know."""
