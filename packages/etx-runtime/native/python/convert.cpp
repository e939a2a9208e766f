// SPDX-License-Identifier: BSD-3-Clause
#include "convert.h"

namespace nb = nanobind;

namespace etx {
namespace python {
namespace {

std::string python_type(nb::handle object) {
  return nb::cast<std::string>(nb::handle(object.type()).attr("__name__"));
}

void check(bool ok, const ErrorText& error) {
  if (!ok) throw Raised("InputError", error);
}

[[noreturn]] void refuse(LoadedMethod& method, size_t index, Error error,
                         const std::string& reason) {
  raise("InputError", error, method.input_label(index) + ": " + reason,
        static_cast<int32_t>(index));
}

void set_array(LoadedMethod& method, size_t index, nb::handle object, Keep* keep) {
  ArrayView view;
  const char* reason = view_array(object, &view, keep);
  if (reason != nullptr && *reason == '\0') {
    refuse(method, index, Error::InvalidArgument,
           "expected " + method.expected_input(index) +
               " (a NumPy array, or an object with "
               "DLPack or the buffer protocol), got " +
               python_type(object));
  }
  if (reason != nullptr) {
    std::string given;
    if (nb::hasattr(object, "dtype")) {
      const nb::object dtype = object.attr("dtype");
      given = ": " + nb::cast<std::string>(nb::str(dtype));
    }
    refuse(method, index, Error::NotSupported, reason + given);
  }
  ErrorText error;
  check(method.set_tensor(index, view.data, view.type, view.shape(), {view.strides, view.rank},
                          !view.is_writable, &error),
        error);
}

/// A Python number for a tensor input becomes an array of the input's dtype.
void set_number(LoadedMethod& method, size_t index, nb::handle object, Keep* keep) {
  const TensorInfo info = *method.method().method_meta().input_tensor_meta(index);
  nb::object array;
  try {
    array = from_number(object, info.scalar_type());
  } catch (nb::python_error&) {
    refuse(method, index, Error::InvalidArgument,
           nb::cast<std::string>(nb::repr(object)) + " is too large for " +
               method.expected_input(index));
  }
  if (!array.is_valid()) {
    refuse(method, index, Error::InvalidArgument,
           "expected " + method.expected_input(index) + ", got " + python_type(object));
  }
  keep->objects.push_back(array);
  set_array(method, index, array, keep);
}

EValue to_scalar(nb::handle object) {
  PyObject* raw = object.ptr();
  if (raw == Py_None) return EValue();
  if (PyBool_Check(raw)) return EValue(raw == Py_True);
  if (PyLong_Check(raw) || (PyIndex_Check(raw) && !PyFloat_Check(raw))) {
    const nb::object number = nb::steal(PyNumber_Index(raw));
    if (!number.is_valid()) throw nb::python_error();
    return EValue(nb::cast<int64_t>(number));
  }
  return EValue(nb::cast<double>(object));
}

/// A tensor's memory is lent only where the method owns it: an input that is passed through may go.
nb::object tensor_to_python(const Tensor& tensor, LoadedMethod* method, nb::handle owner) {
  if (tensor.const_data_ptr() == nullptr && tensor.numel() != 0) return nb::none();
  const bool lend = owner.is_valid() && is_numpy_type(tensor.scalar_type()) &&
                    method->owns(tensor.const_data_ptr(), tensor.nbytes());
  return lend ? view_tensor(tensor, owner, false) : copy_tensor(tensor);
}

}  // namespace

nb::str to_text(const char* bytes, size_t size) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(size), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

[[noreturn]] void raise(const char* kind, Error error, std::string message, int32_t index) {
  ErrorText text;
  text.error = error;
  text.message = std::move(message);
  text.index = index;
  throw Raised(kind, std::move(text));
}

void set_python_error(const Raised& raised) {
  const ErrorText& text = raised.text;
  const nb::object type = nb::module_::import_("etx_runtime.errors").attr(raised.kind);
  const nb::object error = type(clean(text.message), static_cast<uint32_t>(text.error),
                                clean(text.name), text.instruction, text.index);
  if (raised.cause.is_valid()) error.attr("__cause__") = raised.cause;
  PyErr_SetObject(type.ptr(), error.ptr());
}

void set_input(LoadedMethod& method, size_t index, nb::handle object, Keep* keep) {
  PyObject* raw = object.ptr();
  if (method.is_tensor_input(index)) {
    if (PyLong_Check(raw) || PyFloat_Check(raw)) {
      set_number(method, index, object, keep);
    } else {
      set_array(method, index, object, keep);
    }
    return;
  }
  ErrorText error;
  if (nb::isinstance<nb::str>(object)) {
    const std::string text = nb::cast<std::string>(object);
    EValue value;
    value.payload.as_string = text.c_str();
    value.count = static_cast<uint32_t>(text.size());
    value.etx_value::tag = ETX_TAG_STRING;
    check(method.set_value(index, value, &error), error);
    return;
  }
  EValue value;
  try {
    value = to_scalar(object);
  } catch (const std::exception&) {
    PyErr_Clear();
    refuse(method, index, Error::InvalidArgument,
           "expected a number, string or None (at export: " + method.expected_input(index) +
               "), got " + python_type(object));
  }
  check(method.set_value(index, value, &error), error);
}

nb::object to_python(const etx_value& raw, LoadedMethod* method, nb::handle owner) {
  const EValue& value = static_cast<const EValue&>(raw);
  nb::list items;
  switch (value.tag()) {
    case Tag::None: return nb::none();
    case Tag::Tensor: return tensor_to_python(value.to_tensor(), method, owner);
    case Tag::Int: return nb::int_(value.to_int());
    case Tag::Double: return nb::float_(value.to_double());
    case Tag::Bool: return nb::bool_(value.to_bool());
    case Tag::String: return to_text(value.payload.as_string, value.count);
    case Tag::ListInt:
      for (const int64_t item : value.to_int_list()) items.append(item);
      return items;
    case Tag::ListDouble:
      for (const double item : value.to_double_list()) items.append(item);
      return items;
    case Tag::ListBool:
      for (const bool item : value.to_bool_list()) items.append(item);
      return items;
    default:
      for (uint32_t i = 0; i < value.count; ++i) {
        const etx_value* item = value.payload.as_tensor_list[i];
        items.append(item == nullptr ? nb::object(nb::none()) : to_python(*item, method, owner));
      }
      return items;
  }
}

}  // namespace python
}  // namespace etx
