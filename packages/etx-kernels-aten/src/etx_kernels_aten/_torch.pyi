# SPDX-License-Identifier: BSD-3-Clause
BUILT_FOR: str
