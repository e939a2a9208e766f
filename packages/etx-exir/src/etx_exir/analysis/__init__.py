# SPDX-License-Identifier: BSD-3-Clause
"""What passes ask about a graph; nothing here changes one."""
