// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_CONVERT_H_
#define ETX_NATIVE_PYTHON_CONVERT_H_

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <string>

#include <etx/hosted/module.h>

#include "arrays.h"

namespace etx {
namespace python {

/// Becomes an exception of etx_runtime.errors; `kind` is the class's name.
struct Raised : std::exception {
  Raised(const char* kind_, ErrorText text_) : kind(kind_), text(std::move(text_)) {}
  const char* kind;
  ErrorText text;
  /// The Python exception that it comes from, or invalid.
  nanobind::object cause;
};

[[noreturn]] void raise(const char* kind, Error error, std::string message, int32_t index = -1);

/// Makes the exception that is being handled Python's current one.
void set_python_error(const Raised& raised);

/// Bytes of a file as text, with replacements for what is not UTF-8.
nanobind::str to_text(const char* bytes, size_t size);
inline std::string clean(const std::string& bytes) {
  return to_text(bytes.data(), bytes.size()).c_str();
}

/// The result, or a MetadataError with `message`.
template <typename T>
T value_of(Result<T> result, const char* message) {
  if (!result.ok()) raise("MetadataError", result.error(), message);
  return std::move(result.get());
}

/// Defines TensorInfo and MethodMeta.
void bind_compare(nanobind::module_& m);
void bind_metadata(nanobind::module_& m);

/// Sets input `index` of `method` from a Python object: an array (NumPy, DLPack, buffer), a number,
/// a string or None. It and `keep` must live until the execution is over. Throws Raised.
void set_input(LoadedMethod& method, size_t index, nanobind::handle object, Keep* keep);

/// A value as Python sees it. Tensors are copied into new arrays, or where `owner` is given and
/// owns their memory they are read-only views that keep it alive.
nanobind::object to_python(const etx_value& value, LoadedMethod* method = nullptr,
                           nanobind::handle owner = {});

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_CONVERT_H_
