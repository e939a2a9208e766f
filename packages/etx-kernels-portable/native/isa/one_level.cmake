# SPDX-License-Identifier: BSD-3-Clause
# One instruction-set level: its loops are called by name, so that a linker drops the rest.

set(ETX_LEVEL_base "")
set(ETX_LEVEL_v3 -mavx2 -mfma)
set(ETX_LEVEL_v4 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma
                 -mprefer-vector-width=512)
if(NOT DEFINED ETX_LEVEL_${ETX_KERNELS_LEVEL})
  message(FATAL_ERROR "ETX_KERNELS_LEVEL: expected base, v3 or v4, got '${ETX_KERNELS_LEVEL}'")
endif()
set(ETX_LEVEL_SOURCES ${ETX_KERNELS_LOOPS})
list(TRANSFORM ETX_LEVEL_SOURCES REPLACE "\\.cpp$" "_level.cpp")
target_sources(etx_kernels_portable PRIVATE ${ETX_LEVEL_SOURCES})
target_compile_definitions(etx_kernels_portable PRIVATE ETX_ONE_LEVEL)
target_compile_options(etx_kernels_portable PRIVATE ${ETX_LEVEL_${ETX_KERNELS_LEVEL}})
# Requantization is the same bits everywhere: its floats are not contracted.
set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/native/isa/integer/integer_level.cpp"
                            PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
