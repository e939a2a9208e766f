# SPDX-License-Identifier: BSD-3-Clause
# Builds XNNPACK once for the same sources, compiler and flags, while the package is configured.

include("${CMAKE_CURRENT_LIST_DIR}/XnnpackSources.cmake")

# Where sources are unpacked and libraries kept: ETX_XNNPACK_CACHE, the repository's .build, or the
# user's cache.
function(etx_xnnpack_cache result)
  etx_given(folder ETX_XNNPACK_CACHE)
  set(repository "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../..")
  if(NOT folder AND EXISTS "${repository}/tools/wheels.py")
    set(folder "${repository}/.build/xnnpack")
  elseif(NOT folder AND DEFINED ENV{XDG_CACHE_HOME})
    set(folder "$ENV{XDG_CACHE_HOME}/etx/xnnpack")
  elseif(NOT folder)
    set(folder "$ENV{HOME}/.cache/etx/xnnpack")
  endif()
  get_filename_component(folder "${folder}" ABSOLUTE)
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# The options of a build. AMX and AVX512-FP16 of this version compute wrong results with GCC.
set(ETX_XNNPACK_OPTIONS
    -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DXNNPACK_LIBRARY_TYPE=static
    -DXNNPACK_BUILD_TESTS=OFF
    -DXNNPACK_BUILD_BENCHMARKS=OFF
    -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF
    -DXNNPACK_ENABLE_AVX512AMX=OFF
    -DXNNPACK_ENABLE_AVX512FP16=OFF
    -DXNNPACK_ENABLE_KLEIDIAI=OFF
    -DXNNPACK_ENABLE_ARM_SME=OFF
    -DXNNPACK_ENABLE_ARM_SME2=OFF
    -DCPUINFO_BUILD_TOOLS=OFF
    -DCPUINFO_BUILD_UNIT_TESTS=OFF
    -DCPUINFO_BUILD_MOCK_TESTS=OFF
    -DCPUINFO_BUILD_BENCHMARKS=OFF
    -DCPUINFO_LIBRARY_TYPE=static
    -DCPUINFO_LOG_LEVEL=fatal
    -DPTHREADPOOL_BUILD_TESTS=OFF
    -DPTHREADPOOL_BUILD_BENCHMARKS=OFF
    -DPTHREADPOOL_LIBRARY_TYPE=static)
set(ETX_XNNPACK_LIBRARIES XNNPACK microkernels-prod cpuinfo)

function(etx_configure_xnnpack folder flags)
  set(options ${ETX_XNNPACK_OPTIONS})
  foreach(name CMAKE_C_COMPILER CMAKE_CXX_COMPILER CMAKE_ASM_COMPILER CMAKE_TOOLCHAIN_FILE CMAKE_SYSTEM_NAME
               CMAKE_SYSTEM_PROCESSOR CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
               CMAKE_MAKE_PROGRAM CMAKE_SYSROOT Python_EXECUTABLE)
    set(is_guess OFF)
    if(name MATCHES "^CMAKE_SYSTEM" AND NOT CMAKE_CROSSCOMPILING)
      set(is_guess ON)
    endif()
    if(${name} AND NOT is_guess)
      list(APPEND options "-D${name}=${${name}}")
    endif()
  endforeach()
  foreach(part PTHREADPOOL CPUINFO FXDIV)
    list(APPEND options "-D${part}_SOURCE_DIR=${ETX_${part}_TREE}")
  endforeach()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -G "${CMAKE_GENERATOR}" -S "${ETX_XNNPACK_TREE}" -B "${folder}"
            "-DCMAKE_PROJECT_XNNPACK_INCLUDE=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/XnnpackBatches.cmake"
            ${options} "-DCMAKE_C_FLAGS=${flags}" "-DCMAKE_CXX_FLAGS=${flags}" -Wno-dev
            -Wno-deprecated
    OUTPUT_FILE "${folder}.log" ERROR_FILE "${folder}.log" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "XNNPACK cannot be configured; see ${folder}.log")
  endif()
endfunction()

function(etx_build_xnnpack folder)
  message(STATUS "XNNPACK ${ETX_XNNPACK_DATE}: building it, once for this compiler")
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${folder}" --target ${ETX_XNNPACK_LIBRARIES}
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "XNNPACK cannot be built in ${folder}: the error is above")
  endif()
endfunction()

# Imports what lies in <folder> as etx_xnnpack, an interface library with headers and archives; the
# loops of pthreadpool are the target etx_xnnpack_threads, which has a function in the place of one of
# them; functions in the place of XNNPACK's are etx_xnnpack_packing.
function(etx_import_xnnpack folder)
  set(archives)
  foreach(name ${ETX_XNNPACK_LIBRARIES})
    list(APPEND archives "${folder}/lib${name}.a")
  endforeach()
  add_library(etx_xnnpack INTERFACE)
  target_include_directories(etx_xnnpack SYSTEM INTERFACE "${ETX_XNNPACK_TREE}/include"
                                                          "${ETX_PTHREADPOOL_TREE}/include")
  add_dependencies(etx_xnnpack etx_xnnpack_threads etx_xnnpack_packing)
  target_link_libraries(
    etx_xnnpack
    INTERFACE -Wl,--wrap=xnn_pack_f32_gemm_gio_w
              -Wl,--wrap=xnn_init_f32_gemm_config
              -Wl,--wrap=xnn_create_convolution2d_nhwc_f32
              -Wl,--wrap=xnn_create_fully_connected_nc_f32
              -Wl,--wrap=xnn_indirection_init_maxpool2d
              -Wl,--wrap=xnn_indirection_init_subconv2d
              -Wl,--wrap=xnn_init_value_allocation_tracker
              -Wl,--wrap=xnn_plan_value_allocation_tracker
              -Wl,--wrap=pthreadpool_parallelize_1d -Wl,--wrap=pthreadpool_parallelize_2d
              -Wl,--wrap=pthreadpool_parallelize_2d_tile_2d -Wl,--start-group ${archives}
              $<TARGET_FILE:etx_xnnpack_threads> $<TARGET_FILE:etx_xnnpack_packing> -Wl,--end-group
              m)
endfunction()

# Makes the target etx_xnnpack, and sets ETX_XNNPACK_BUILD, which stands for sources, compiler and
# flags (empty for sources that may change). The number in front of the key rises with
# the patch and with the batches.
macro(etx_add_xnnpack)
  etx_xnnpack_cache(etx_cache)
  file(MAKE_DIRECTORY "${etx_cache}")
  file(LOCK "${etx_cache}" DIRECTORY GUARD FILE)
  etx_find_xnnpack_sources("${etx_cache}")
  set(etx_flags "-ffunction-sections -fdata-sections ${ETX_XNNPACK_FLAGS}")
  list(JOIN ETX_XNNPACK_OPTIONS " " etx_options)
  file(REAL_PATH "${CMAKE_C_COMPILER}" etx_c_compiler)
  file(REAL_PATH "${CMAKE_CXX_COMPILER}" etx_cxx_compiler)
  string(SHA256 etx_key "3|${ETX_XNNPACK_SOURCES_KEY}|${CMAKE_C_COMPILER_ID}|${CMAKE_C_COMPILER_VERSION}|\
${etx_c_compiler}|${etx_cxx_compiler}|${CMAKE_SYSTEM_NAME}|${CMAKE_SYSTEM_PROCESSOR}|${etx_options}|${etx_flags}")
  string(SUBSTRING ${etx_key} 0 16 etx_key)
  set(etx_kept "${etx_cache}/${CMAKE_SYSTEM_PROCESSOR}-${etx_key}")
  set(ETX_XNNPACK_BUILD "${etx_key}")
  if(NOT ETX_XNNPACK_SOURCES_KEY)
    set(ETX_XNNPACK_BUILD "")
    set(etx_kept "${CMAKE_CURRENT_BINARY_DIR}/xnnpack")
  endif()
  if(NOT EXISTS "${etx_kept}" OR NOT ETX_XNNPACK_SOURCES_KEY)
    set(etx_built "${etx_kept}.build")
    etx_configure_xnnpack("${etx_built}" "${etx_flags}")
    etx_build_xnnpack("${etx_built}")
    file(REMOVE_RECURSE "${etx_kept}.part")
    foreach(name ${ETX_XNNPACK_LIBRARIES})
      file(GLOB_RECURSE etx_archive "${etx_built}/lib${name}.a")
      file(COPY ${etx_archive} DESTINATION "${etx_kept}.part")
    endforeach()
    file(REMOVE_RECURSE "${etx_kept}")
    file(RENAME "${etx_kept}.part" "${etx_kept}")
    if(ETX_XNNPACK_SOURCES_KEY)
      file(REMOVE_RECURSE "${etx_built}" "${etx_built}.log")
    endif()
  endif()
  file(LOCK "${etx_cache}" DIRECTORY RELEASE)
  etx_import_xnnpack("${etx_kept}")
endmacro()
