# SPDX-License-Identifier: BSD-3-Clause
set(ETX_CPU "-mcpu=cortex-m55 -mfloat-abi=hard")
set(ETX_RUN_BOARD mps3-an547)
include("${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake")
