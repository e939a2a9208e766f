# SPDX-License-Identifier: BSD-3-Clause
# Compiles isa_level.cpp once per instruction-set level.

include(CheckCXXCompilerFlag)

function(etx_add_level_object name source)
  add_library(etx_isa_${name} OBJECT "${CMAKE_CURRENT_SOURCE_DIR}/native/isa/${source}")
  target_include_directories(etx_isa_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/native")
  target_link_libraries(etx_isa_${name} PRIVATE etx::headers)
  etx_kernels_options(etx_isa_${name})
  target_compile_options(etx_isa_${name} PRIVATE ${ARGN})
  target_sources(etx_kernels_portable PRIVATE $<TARGET_OBJECTS:etx_isa_${name}>)
endfunction()

function(etx_add_isa_level level)
  etx_add_level_object(${level} isa_level.cpp ${ARGN})
  target_compile_definitions(etx_isa_${level} PRIVATE ETX_ISA_LEVEL=${level})
endfunction()

etx_add_isa_level(base)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(etx_kernels_portable PRIVATE ETX_ISA_X86_LEVELS)
  etx_add_isa_level(v3 -mavx2 -mfma -mf16c)
  etx_add_isa_level(v4 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
                    -mprefer-vector-width=512)
  check_cxx_compiler_flag(-mavx512bf16 ETX_HAS_AVX512BF16)
  if(ETX_HAS_AVX512BF16)
    target_compile_definitions(etx_kernels_portable PRIVATE ETX_ISA_X86_PAIRS)
    etx_add_level_object(pairs pairs_level.cpp -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2
                         -mavx512bf16 -mfma -mf16c -mprefer-vector-width=512)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND ETX_KERNELS_OPTIMIZE STREQUAL "-O3")
      target_compile_options(etx_isa_pairs PRIVATE -O2)
    endif()
  endif()
endif()
