# SPDX-License-Identifier: BSD-3-Clause
"""What the compiler knows of operators and graphs; imports nothing of its passes."""
