# SPDX-License-Identifier: BSD-3-Clause
# XNNPACK's microkernels, several to a compilation: each of the 700 files alone is little code behind
# 35,000 lines of intrinsics. Included by XNNPACK's project().

set(ETX_MICROKERNELS_IN_A_BATCH 12)

# Where GCC keeps a sum of the loop in memory unless it orders instructions before it allocates
# registers: float32 products of processors with AVX2 alone took twice the time.
set(ETX_ORDERED_MICROKERNELS "f32-i?gemm-5x16-minmax-fma3-broadcast")

# Compiles the C files of <target> in batches of the same flags; scalar ones by themselves, as their
# names of vectors are those of every instruction set. Runs at the end of XNNPACK's CMakeLists.txt,
# where all flags are set.
function(etx_batch_microkernels target)
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_DUPLICATES sources)
  set(kept)
  set(all_flags)
  foreach(source ${sources})
    get_source_file_property(flags "${source}" COMPILE_FLAGS)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND source MATCHES "${ETX_ORDERED_MICROKERNELS}")
      string(APPEND flags " -fschedule-insns -fsched-pressure")
    endif()
    if(NOT source MATCHES "\\.c$")
      list(APPEND kept "${source}")
      continue()
    endif()
    string(REGEX MATCH "scalar" kind "${source}")
    string(MD5 key "${flags}${kind}")
    list(APPEND all_flags ${key})
    set(flags_${key} "${flags}")
    list(APPEND sources_${key} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES all_flags)
  foreach(key ${all_flags})
    list(LENGTH sources_${key} count)
    math(EXPR last "${count} - 1")
    foreach(first RANGE 0 ${last} ${ETX_MICROKERNELS_IN_A_BATCH})
      list(SUBLIST sources_${key} ${first} ${ETX_MICROKERNELS_IN_A_BATCH} batch)
      list(TRANSFORM batch PREPEND "#include \"${CMAKE_CURRENT_SOURCE_DIR}/")
      list(TRANSFORM batch APPEND "\"\n")
      string(CONCAT text ${batch})
      set(file "${CMAKE_CURRENT_BINARY_DIR}/batches/${key}-${first}.c")
      file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
      if(flags_${key})
        set_source_files_properties("${file}" PROPERTIES COMPILE_FLAGS "${flags_${key}}")
      endif()
      list(APPEND kept "${file}")
    endforeach()
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${kept})
endfunction()

cmake_language(DEFER CALL etx_batch_microkernels microkernels-prod)
