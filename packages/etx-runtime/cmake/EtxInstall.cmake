# SPDX-License-Identifier: BSD-3-Clause
# Headers, static libraries and the CMake package, below the package's folder in a wheel.

include(CMakePackageConfigHelpers)

install(DIRECTORY include/ DESTINATION include)
install(TARGETS etx_headers etx_core EXPORT etx_targets ARCHIVE DESTINATION lib)
if(TARGET etx_runtime)
  install(TARGETS etx_runtime EXPORT etx_targets ARCHIVE DESTINATION lib)
  set_target_properties(etx_runtime PROPERTIES EXPORT_NAME runtime OUTPUT_NAME etx_runtime)
endif()
if(TARGET etx_shared)
  install(TARGETS etx_shared EXPORT etx_targets LIBRARY DESTINATION lib ARCHIVE DESTINATION lib
                                                RUNTIME DESTINATION lib)
endif()
install(EXPORT etx_targets NAMESPACE etx:: DESTINATION cmake FILE etx_runtime-targets.cmake)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/etx_runtime-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES cmake/etx_runtime-config.cmake cmake/EtxPlugin.cmake cmake/EtxFlatBuffers.cmake
              "${CMAKE_CURRENT_BINARY_DIR}/etx_runtime-config-version.cmake"
        DESTINATION cmake)
