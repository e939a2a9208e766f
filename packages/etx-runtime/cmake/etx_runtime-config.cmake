# SPDX-License-Identifier: BSD-3-Clause
# find_package(etx_runtime): etx::headers for plugins, etx::core for firmware, etx::runtime for
# hosted programs, and etx_add_plugin().

include(CMakeFindDependencyMacro)
if(CMAKE_SYSTEM_NAME AND NOT CMAKE_SYSTEM_NAME STREQUAL "Generic")
  find_dependency(Threads)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/etx_runtime-targets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/EtxPlugin.cmake")
