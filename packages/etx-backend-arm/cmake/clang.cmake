# SPDX-License-Identifier: BSD-3-Clause
# Vector kernels that clang makes quicker than GCC, for a GCC toolchain that builds the rest.

# etx_compile_by_clang(<target> <source>...)
#
# Replaces these sources of a target by objects that clang++ makes with GCC's C++ library. Where
# there is no clang++ that can, or ETX_CORTEX_M_CLANG is OFF, nothing changes.
function(etx_compile_by_clang target)
  if(NOT ETX_CORTEX_M_CLANG)
    find_program(ETX_CORTEX_M_CLANG NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16
                 clang++-15 clang++-14 DOC "Compiles hot vector kernels; OFF: GCC compiles all")
  endif()
  if(NOT ETX_CORTEX_M_CLANG)
    message(STATUS "Vector kernels: GCC alone, clang++ makes some of them quicker")
    return()
  endif()
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  list(FILTER flags INCLUDE REGEX "^-[mf]")
  set(work "${CMAKE_CURRENT_BINARY_DIR}/clang")
  file(WRITE "${work}/try.cpp" "#include <arm_mve.h>\n#include <cstring>\n#include <type_traits>\n")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -E -v "${work}/try.cpp" OUTPUT_QUIET
                  ERROR_VARIABLE said)
  string(REGEX REPLACE ".*search starts here:\n(.*)\nEnd of search list.*" "\\1" folders "${said}")
  string(REGEX MATCHALL "[^ \n][^\n]*" folders "${folders}")
  list(FILTER folders EXCLUDE REGEX "/lib/gcc/[^/]+/[0-9.]+/include(-fixed)?$")
  list(TRANSFORM folders PREPEND "-isystem")
  set(command "${ETX_CORTEX_M_CLANG}" --target=arm-none-eabi ${flags} -fshort-enums -std=c++17 -O2
              -ffp-contract=off -fno-exceptions -fno-rtti -fno-unwind-tables -ffunction-sections
              -fdata-sections -fvisibility=hidden ${folders})
  execute_process(COMMAND ${command} -c "${work}/try.cpp" -o "${work}/try.o" OUTPUT_QUIET
                  ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    message(STATUS "Vector kernels: GCC alone, ${ETX_CORTEX_M_CLANG} cannot compile for this target")
    return()
  endif()
  message(STATUS "Vector kernels: some by ${ETX_CORTEX_M_CLANG}")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  foreach(source IN LISTS ARGN)
    get_filename_component(name "${source}" NAME_WE)
    set(object "${work}/${name}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${command}
              "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>" -MD -MF "${object}.d"
              -c "${source}" -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${source}" PROPERTIES HEADER_FILE_ONLY ON)
    target_sources(${target} PRIVATE "${object}")
  endforeach()
endfunction()
