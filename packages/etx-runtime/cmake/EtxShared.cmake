# SPDX-License-Identifier: BSD-3-Clause
# The shared library, which exports the functions of etx/etx.h and nothing else.

add_library(etx_shared SHARED native/hosted/c_method.cpp native/hosted/c_program.cpp)
add_library(etx::c ALIAS etx_shared)
etx_set_warnings(etx_shared)
set_target_properties(etx_shared PROPERTIES EXPORT_NAME c OUTPUT_NAME etx_runtime
                                            CXX_VISIBILITY_PRESET hidden
                                            VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
target_compile_definitions(etx_shared PRIVATE ETX_BUILDING_SHARED)
target_link_libraries(etx_shared PRIVATE etx_runtime)
target_include_directories(etx_shared
  INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_LIST_DIR}/../include> $<INSTALL_INTERFACE:include>)
if(UNIX AND NOT APPLE)
  target_link_options(etx_shared PRIVATE -Wl,--gc-sections
                      "LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/etx_runtime.map")
  set_target_properties(etx_shared PROPERTIES
                        LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/etx_runtime.map")
endif()
