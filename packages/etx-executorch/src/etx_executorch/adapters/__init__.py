# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch calls in another form than ETX: each is a few lines over ETX."""
