# SPDX-License-Identifier: BSD-3-Clause
"""Passes that put what surrounds a layer into its weights and bias."""
