# SPDX-License-Identifier: BSD-3-Clause
"""What is in a file: its description, its planned memory, what its instructions read and write."""
