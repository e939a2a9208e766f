# SPDX-License-Identifier: BSD-3-Clause
"""`etx select`: a kernel library with only what given files use."""
