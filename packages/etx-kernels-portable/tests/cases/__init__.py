# SPDX-License-Identifier: BSD-3-Clause
"""Cases of each family of kernels."""
