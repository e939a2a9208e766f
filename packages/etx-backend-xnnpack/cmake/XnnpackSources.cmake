# SPDX-License-Identifier: BSD-3-Clause
# The sources of XNNPACK and of what it needs, never vendored: unpacked trees, or four archives with
# pinned checksums.

set(ETX_XNNPACK_DATE "2024-11-08")
set(ETX_XNNPACK_COMMIT "4ea82e5")
set(ETX_XNNPACK_PARTS xnnpack pthreadpool cpuinfo fxdiv)
set(ETX_XNNPACK_FILE_xnnpack "xnnpack_0.0~git20241108.4ea82e5.orig.tar.xz")
set(ETX_XNNPACK_FILE_pthreadpool "pthreadpool_0.0~git20240616.560c60d.orig.tar.xz")
set(ETX_XNNPACK_FILE_cpuinfo "cpuinfo_0.0~git20250905.877328f.orig.tar.xz")
set(ETX_XNNPACK_FILE_fxdiv "fxdiv_0.0~git20200417.b408327.orig.tar.xz")
set(ETX_XNNPACK_SHA256_xnnpack 90bde2caef0f880f627bab0dc805a86c4b8070cd98e3243db3046ab3f3be1a99)
set(ETX_XNNPACK_SHA256_pthreadpool 4cc3cbd933b28131d2a34edc54f76af9fb41bc490af5eae1a5bd3cd07ea90708)
set(ETX_XNNPACK_SHA256_cpuinfo 557ca404a3836b9f335a3a06b65ff9fe9dbaaefab7fb5c0185f53d9f33615a10)
set(ETX_XNNPACK_SHA256_fxdiv 7953482badaf4cb34026c3487c257b8e4ab2df061c019bd6fabbbc12ad52c44b)
set(ETX_XNNPACK_SOURCE_DIR "" CACHE PATH "An unpacked XNNPACK; with it, the folders of its three parts")
foreach(part pthreadpool cpuinfo fxdiv)
  string(TOUPPER ${part} upper)
  set(ETX_${upper}_SOURCE_DIR "" CACHE PATH "An unpacked ${part}, with ETX_XNNPACK_SOURCE_DIR")
endforeach()
set(ETX_XNNPACK_TARBALLS "" CACHE PATH "A folder of the four archives")

# The first value that is set: the CMake variable, then the environment's.
function(etx_given result name)
  set(value "${${name}}")
  if(NOT value AND DEFINED ENV{${name}})
    set(value "$ENV{${name}}")
  endif()
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

# Sets <result> to a folder that holds the four archives, or to nothing.
function(etx_find_xnnpack_archives result cache)
  etx_given(given ETX_XNNPACK_TARBALLS)
  set(${result} "" PARENT_SCOPE)
  set(repository "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../..")
  foreach(folder "${given}" "${repository}/../shared/xnnpack-sources"
                 "${cache}/archives")
    if(folder AND EXISTS "${folder}/${ETX_XNNPACK_FILE_xnnpack}")
      set(${result} "${folder}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(given)
    message(FATAL_ERROR "ETX_XNNPACK_TARBALLS: ${given} holds no ${ETX_XNNPACK_FILE_xnnpack}")
  endif()
endfunction()

# Asks the package sources of a Debian machine for the archives.
function(etx_fetch_xnnpack_archives folder)
  find_program(ETX_APT_GET apt-get)
  find_package(Python 3.10 COMPONENTS Interpreter QUIET)
  if(ETX_APT_GET AND Python_EXECUTABLE)
    message(STATUS "XNNPACK: asking apt-get for its sources")
    execute_process(COMMAND "${Python_EXECUTABLE}"
                            "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/fetch_sources.py" "${folder}"
                    RESULT_VARIABLE status)
    if(status EQUAL 0)
      return()
    endif()
  endif()
  message(FATAL_ERROR
    "The sources of XNNPACK ${ETX_XNNPACK_DATE} (${ETX_XNNPACK_COMMIT}) are missing. Set "
    "ETX_XNNPACK_TARBALLS to a folder with ${ETX_XNNPACK_FILE_xnnpack}, "
    "${ETX_XNNPACK_FILE_pthreadpool}, ${ETX_XNNPACK_FILE_cpuinfo} and ${ETX_XNNPACK_FILE_fxdiv}; or "
    "ETX_XNNPACK_SOURCE_DIR, ETX_PTHREADPOOL_SOURCE_DIR, ETX_CPUINFO_SOURCE_DIR and "
    "ETX_FXDIV_SOURCE_DIR to unpacked trees of these versions.")
endfunction()

# Sets <result> to a folder of the four archives; gets them where there is none.
function(etx_get_xnnpack_archives result cache)
  etx_find_xnnpack_archives(found "${cache}")
  if(NOT found)
    set(found "${cache}/archives")
    etx_fetch_xnnpack_archives("${found}")
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Unpacks one archive into <folder>, dropping the one folder that some archives begin with.
function(etx_unpack archive sha256 folder)
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL sha256)
    message(FATAL_ERROR "${archive}: expected SHA-256 ${sha256}, found ${found}")
  endif()
  file(REMOVE_RECURSE "${folder}.part")
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${folder}.part")
  file(GLOB content LIST_DIRECTORIES ON "${folder}.part/*")
  list(LENGTH content count)
  if(count EQUAL 1)
    file(RENAME "${content}" "${folder}")
    file(REMOVE_RECURSE "${folder}.part")
  else()
    file(RENAME "${folder}.part" "${folder}")
  endif()
endfunction()

# Kernels of 14 rows read the scales of 13 rows behind the last, and XNNPACK pads them with 10: a linear
# layer with int4 groups then computes the last of 2, 3, 15, 16 or 17 rows with scales of 0.
function(etx_patch_xnnpack folder)
  set(header "${folder}/include/xnnpack.h")
  file(READ "${header}" text)
  string(REPLACE "XNN_EXTRA_QUANTIZATION_PARAMS 10" "XNN_EXTRA_QUANTIZATION_PARAMS 15" patched "${text}")
  if(patched STREQUAL text)
    message(FATAL_ERROR "${header}: XNN_EXTRA_QUANTIZATION_PARAMS is not 10; check the patch")
  endif()
  file(WRITE "${header}" "${patched}")
endfunction()

# Sets ETX_<PART>_TREE for the four parts, and ETX_XNNPACK_SOURCES_KEY, which stands for their content
# (empty for trees that may change). Archives are looked for only when a tree is missing.
macro(etx_find_xnnpack_sources cache)
  etx_given(ETX_XNNPACK_TREE ETX_XNNPACK_SOURCE_DIR)
  set(ETX_XNNPACK_SOURCES_KEY "")
  if(ETX_XNNPACK_TREE)
    foreach(part pthreadpool cpuinfo fxdiv)
      string(TOUPPER ${part} upper)
      etx_given(ETX_${upper}_TREE ETX_${upper}_SOURCE_DIR)
      if(NOT IS_DIRECTORY "${ETX_${upper}_TREE}")
        message(FATAL_ERROR "ETX_XNNPACK_SOURCE_DIR is set: set ETX_${upper}_SOURCE_DIR to an "
                            "unpacked ${part}, too")
      endif()
    endforeach()
  else()
    set(etx_archives "")
    foreach(part ${ETX_XNNPACK_PARTS})
      string(TOUPPER ${part} upper)
      string(SUBSTRING ${ETX_XNNPACK_SHA256_${part}} 0 12 short)
      set(ETX_${upper}_TREE "${cache}/${part}-${short}")
      string(APPEND ETX_XNNPACK_SOURCES_KEY "${ETX_XNNPACK_SHA256_${part}} ")
      if(NOT EXISTS "${ETX_${upper}_TREE}")
        if(NOT etx_archives)
          etx_get_xnnpack_archives(etx_archives "${cache}")
        endif()
        set(etx_fresh "${ETX_${upper}_TREE}.new")
        file(REMOVE_RECURSE "${etx_fresh}")
        etx_unpack("${etx_archives}/${ETX_XNNPACK_FILE_${part}}" ${ETX_XNNPACK_SHA256_${part}}
                   "${etx_fresh}")
        if(part STREQUAL "xnnpack")
          etx_patch_xnnpack("${etx_fresh}")
        endif()
        file(RENAME "${etx_fresh}" "${ETX_${upper}_TREE}")
      endif()
    endforeach()
  endif()
endmacro()
