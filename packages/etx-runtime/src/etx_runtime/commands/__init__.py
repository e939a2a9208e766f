# SPDX-License-Identifier: BSD-3-Clause
"""`etx run` and `etx bench`; imported where one of them is called."""
