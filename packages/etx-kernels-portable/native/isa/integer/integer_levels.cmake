# SPDX-License-Identifier: BSD-3-Clause
# Compiles integer_level.cpp once per level of integers.

include(CheckCXXCompilerFlag)

function(etx_add_integer_level level)
  add_library(etx_integer_${level} OBJECT
              "${CMAKE_CURRENT_SOURCE_DIR}/native/isa/integer/integer_level.cpp")
  target_compile_definitions(etx_integer_${level} PRIVATE ETX_ISA_LEVEL=${level})
  target_include_directories(etx_integer_${level} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/native")
  target_link_libraries(etx_integer_${level} PRIVATE etx::headers)
  etx_kernels_options(etx_integer_${level})
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    # What is hot is unrolled by hand; more of it, or what is around it, is only larger.
    if(NOT ETX_SANITIZE)
      set(leaner $<$<CXX_COMPILER_ID:GNU>:-fno-tree-pre;-fno-gcse;-fno-align-jumps;-fno-align-labels>)
      target_compile_options(etx_integer_${level} PRIVATE -O2 "${leaner}")
    endif()
    target_compile_options(
      etx_integer_${level} PRIVATE -ffp-contract=off
                                   $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
  endif()
  target_compile_options(etx_integer_${level} PRIVATE ${ARGN})
  target_sources(etx_kernels_portable PRIVATE $<TARGET_OBJECTS:etx_integer_${level}>)
endfunction()

set(ETX_SMALL)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT ETX_SANITIZE)
  set(ETX_SMALL -Os)
endif()
etx_add_integer_level(base ${ETX_SMALL})
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  check_cxx_compiler_flag(-mavxvnni ETX_HAS_AVXVNNI)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND ETX_HAS_AVXVNNI)
    target_compile_definitions(etx_kernels_portable PRIVATE ETX_INTEGER_X86_LEVELS)
    etx_add_integer_level(v3 -mavx2 -mfma)
    etx_add_integer_level(v3_vnni -mavx2 -mfma -mavxvnni)
    etx_add_integer_level(v4_vnni -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2
                          -mfma -mprefer-vector-width=512)
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
      target_compile_definitions(etx_kernels_portable PRIVATE ETX_INTEGER_AMX)
      target_compile_definitions(etx_integer_v4_vnni PRIVATE ETX_INTEGER_AMX)
    endif()
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|ARM64|arm64" AND CMAKE_SYSTEM_NAME MATCHES
                                                              "Linux|Android")
    target_compile_definitions(etx_kernels_portable PRIVATE ETX_INTEGER_ARM_LEVELS)
    etx_add_integer_level(dotprod -march=armv8.2-a+dotprod)
    etx_add_integer_level(i8mm -march=armv8.2-a+dotprod+i8mm)
  endif()
endif()
