# SPDX-License-Identifier: BSD-3-Clause
set(ETX_CPU "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16")
set(ETX_RUN_BOARD mps2-an386)
include("${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake")
