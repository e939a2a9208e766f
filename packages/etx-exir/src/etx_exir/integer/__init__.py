# SPDX-License-Identifier: BSD-3-Clause
"""How each operator is computed in integers: the rows of the passes in `passes/integer`."""
