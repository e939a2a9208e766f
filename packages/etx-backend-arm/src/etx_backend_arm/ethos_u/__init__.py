# SPDX-License-Identifier: BSD-3-Clause
"""Ethos-U: TOSA graphs compiled by Vela, and the blob that holds what Vela makes of them."""
