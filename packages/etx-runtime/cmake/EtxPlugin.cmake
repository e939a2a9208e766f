# SPDX-License-Identifier: BSD-3-Clause
# Functions for plugins: libraries of kernels or backends.

# Firmware lies where it was linked to.
if(CMAKE_SYSTEM_NAME STREQUAL "Generic")
  set(ETX_PIC OFF CACHE INTERNAL "")
else()
  set(ETX_PIC ON CACHE INTERNAL "")
endif()

# Warnings as errors, and the sanitizers of ETX_SANITIZE.
function(etx_set_warnings target)
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4)
  else()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Werror)
  endif()
  if(ETX_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ETX_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${ETX_SANITIZE})
  endif()
endfunction()

# etx_add_plugin(<name> SHARED|STATIC SOURCES <source>...)
#
# Builds a plugin whose sources define its entry point with ETX_PLUGIN(<symbol>, ...). SHARED: a
# module that exports etx_plugin_v1, for etx_runtime to load. STATIC: a library that defines
# etx_plugin_<symbol>, for firmware that passes it to its Registry. Without exceptions and RTTI.
function(etx_add_plugin name kind)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES")
  if(kind STREQUAL "SHARED")
    add_library(${name} MODULE ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES PREFIX "lib" POSITION_INDEPENDENT_CODE ON)
  elseif(kind STREQUAL "STATIC")
    add_library(${name} STATIC ${arg_SOURCES})
    target_compile_definitions(${name} PUBLIC ETX_PLUGIN_STATIC)
  else()
    message(FATAL_ERROR "etx_add_plugin(${name} ...): expected SHARED or STATIC, got ${kind}")
  endif()
  target_link_libraries(${name} PRIVATE etx::headers)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
  if(NOT MSVC)
    target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti -ffunction-sections
                                           -fdata-sections)
  endif()
  etx_set_warnings(${name})
endfunction()
