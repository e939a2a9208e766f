# SPDX-License-Identifier: BSD-3-Clause
# Compiles isa_level.cpp once per instruction-set level.

function(etx_add_isa_level level)
  add_library(etx_isa_${level} OBJECT "${CMAKE_CURRENT_SOURCE_DIR}/native/isa/isa_level.cpp")
  target_compile_definitions(etx_isa_${level} PRIVATE ETX_ISA_LEVEL=${level})
  target_include_directories(etx_isa_${level} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/native")
  target_link_libraries(etx_isa_${level} PRIVATE etx::headers)
  etx_kernels_options(etx_isa_${level})
  target_compile_options(etx_isa_${level} PRIVATE ${ARGN})
  target_sources(etx_kernels_portable PRIVATE $<TARGET_OBJECTS:etx_isa_${level}>)
endfunction()

etx_add_isa_level(base)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(etx_kernels_portable PRIVATE ETX_ISA_X86_LEVELS)
  etx_add_isa_level(v3 -mavx2 -mfma -mf16c)
  etx_add_isa_level(v4 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
                    -mprefer-vector-width=512)
endif()
