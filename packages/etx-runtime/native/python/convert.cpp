// SPDX-License-Identifier: BSD-3-Clause
#include "convert.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace nb = nanobind;

namespace etx {
namespace python {
namespace {

struct DtypeRow {
  ScalarType type;
  nb::dlpack::dtype_code code;
  uint8_t bits;
  bool in_numpy;
};

using Code = nb::dlpack::dtype_code;

constexpr DtypeRow kDtypes[] = {
    {ScalarType::Float, Code::Float, 32, true},
    {ScalarType::Long, Code::Int, 64, true},
    {ScalarType::Bool, Code::Bool, 8, true},
    {ScalarType::Int, Code::Int, 32, true},
    {ScalarType::Byte, Code::UInt, 8, true},
    {ScalarType::Char, Code::Int, 8, true},
    {ScalarType::Short, Code::Int, 16, true},
    {ScalarType::Half, Code::Float, 16, true},
    {ScalarType::Double, Code::Float, 64, true},
    {ScalarType::BFloat16, Code::Bfloat, 16, false},
    {ScalarType::UInt16, Code::UInt, 16, true},
    {ScalarType::UInt32, Code::UInt, 32, true},
    {ScalarType::UInt64, Code::UInt, 64, true},
    {ScalarType::ComplexHalf, Code::Complex, 32, false},
    {ScalarType::ComplexFloat, Code::Complex, 64, true},
    {ScalarType::ComplexDouble, Code::Complex, 128, true},
    {ScalarType::Float8_e4m3fn, Code::Float8_E4M3FN, 8, false},
    {ScalarType::Float8_e4m3fnuz, Code::Float8_E4M3FNUZ, 8, false},
    {ScalarType::Float8_e5m2, Code::Float8_E5M2, 8, false},
    {ScalarType::Float8_e5m2fnuz, Code::Float8_E5M2FNUZ, 8, false},
    {ScalarType::QInt8, Code::Int, 8, true},
    {ScalarType::QUInt8, Code::UInt, 8, true},
    {ScalarType::QInt32, Code::Int, 32, true},
};

const DtypeRow* find_row(nb::dlpack::dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    const bool same = dtype.code == static_cast<uint8_t>(row.code) && dtype.bits == row.bits;
    if (same && dtype.lanes == 1) return &row;
  }
  return nullptr;
}

const DtypeRow* find_row(ScalarType type) {
  for (const DtypeRow& row : kDtypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

std::string python_type(nb::handle object) {
  return nb::cast<std::string>(nb::handle(object.type()).attr("__name__"));
}

void check(bool ok, const ErrorText& error) {
  if (!ok) throw Raised("InputError", error);
}

void set_array(LoadedMethod& method, size_t index, nb::handle object) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array)) {
    raise("InputError", Error::InvalidArgument,
          "input " + std::to_string(index) + ": expected an array (NumPy, DLPack or buffer), got " +
              python_type(object),
          static_cast<int32_t>(index));
  }
  if (array.device_type() != nb::device::cpu::value) {
    raise("InputError", Error::InvalidArgument,
          "input " + std::to_string(index) + ": the array is not in the CPU's memory",
          static_cast<int32_t>(index));
  }
  const DtypeRow* row = find_row(array.dtype());
  if (row == nullptr) {
    raise("InputError", Error::NotSupported,
          "input " + std::to_string(index) + ": arrays of this dtype are not supported",
          static_cast<int32_t>(index));
  }
  std::vector<int32_t> sizes(array.ndim());
  std::vector<int64_t> strides(array.ndim());
  for (size_t i = 0; i < array.ndim(); ++i) {
    sizes[i] = array.shape(i) > INT32_MAX ? -1 : static_cast<int32_t>(array.shape(i));
    strides[i] = array.stride(i);
  }
  ErrorText error;
  const bool ok = method.set_tensor(index, array.data(), row->type, sizes, strides, true, &error);
  check(ok, error);
}

/// A Python number for a tensor input becomes an array of the input's dtype.
void set_number(LoadedMethod& method, size_t index, nb::handle object) {
  const TensorInfo info = *method.method().method_meta().input_tensor_meta(index);
  const nb::object make = nb::module_::import_("etx_runtime.arrays").attr("from_number");
  const nb::object array = make(object, to_string(info.scalar_type()));
  if (array.is_none() || info.is_memory_planned() == false) {
    raise("InputError", Error::InvalidArgument,
          "input " + std::to_string(index) + ": expected an array, got " + python_type(object),
          static_cast<int32_t>(index));
  }
  set_array(method, index, array);
}

EValue to_scalar(nb::handle object) {
  PyObject* raw = object.ptr();
  if (raw == Py_None) return EValue();
  if (PyBool_Check(raw)) return EValue(raw == Py_True);
  if (PyLong_Check(raw) || (PyIndex_Check(raw) && !PyFloat_Check(raw))) {
    return EValue(nb::cast<int64_t>(nb::steal(PyNumber_Index(raw))));
  }
  return EValue(nb::cast<double>(object));
}

/// An attribute of NumPy, looked up once a process.
nb::handle numpy(std::atomic<PyObject*>& cache, const char* name) {
  PyObject* found = cache.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = nb::module_::import_("numpy").attr(name).ptr();
    Py_INCREF(found);
    cache.store(found, std::memory_order_release);
  }
  return found;
}

/// A copy of a row-major tensor; the short way for what most outputs are.
nb::object new_array(const Tensor& tensor, const DtypeRow& row) {
  static std::atomic<PyObject*> empty{nullptr};
  static std::atomic<PyObject*> dtypes[kNumScalarTypes] = {};
  const char* name = to_string(row.type);
  if (row.type >= ScalarType::QInt8 && row.type <= ScalarType::QInt32) ++name;
  const auto rank = static_cast<Py_ssize_t>(tensor.dim());
  nb::object shape = nb::steal(PyTuple_New(rank));
  if (!shape.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < rank; ++i) {
    PyTuple_SetItem(shape.ptr(), i, PyLong_FromSsize_t(tensor.size(i)));
  }
  const char* dtype_name = row.type == ScalarType::Bool ? "bool_" : name;
  const nb::handle dtype = numpy(dtypes[static_cast<size_t>(row.type)], dtype_name);
  nb::object array = numpy(empty, "empty")(shape, dtype);
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
  if (tensor.nbytes() != 0) std::memcpy(view.buf, tensor.const_data_ptr(), tensor.nbytes());
  PyBuffer_Release(&view);
  return array;
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

void set_input(LoadedMethod& method, size_t index, nb::handle object) {
  PyObject* raw = object.ptr();
  const bool is_number = PyLong_Check(raw) || PyFloat_Check(raw);
  if (method.method().get_input(index).is_tensor()) {
    if (is_number) {
      set_number(method, index, object);
    } else {
      set_array(method, index, object);
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
    raise("InputError", Error::InvalidArgument,
          "input " + std::to_string(index) + ": expected a number, string or None, got " +
              python_type(object),
          static_cast<int32_t>(index));
  }
  check(method.set_value(index, value, &error), error);
}

nb::object to_array(const Tensor& tensor) {
  const DtypeRow* row = find_row(tensor.scalar_type());
  if (row != nullptr && row->in_numpy && tensor.is_contiguous()) return new_array(tensor, *row);
  const size_t size = tensor.nbytes();
  void* data = std::malloc(size + 1);
  if (data == nullptr) throw std::bad_alloc();
  const nb::capsule owner(data, [](void* bytes) noexcept { std::free(bytes); });
  if (size != 0) std::memcpy(data, tensor.const_data_ptr(), size);
  size_t shape[kMaxRank + 1];
  int64_t strides[kMaxRank + 1];
  size_t rank = static_cast<size_t>(tensor.dim());
  for (size_t i = 0; i < rank; ++i) {
    shape[i] = static_cast<size_t>(tensor.sizes()[i]);
    strides[i] = tensor.strides()[i];
  }
  const nb::dlpack::dtype dtype = {
      static_cast<uint8_t>(row == nullptr ? Code::UInt : row->code),
      static_cast<uint8_t>(row == nullptr ? tensor.element_size() * 8 : row->bits), 1};
  if (row == nullptr || row->in_numpy) {
    return nb::cast(nb::ndarray<nb::numpy>(data, rank, shape, owner, strides, dtype));
  }
  return nb::cast(nb::ndarray<nb::array_api>(data, rank, shape, owner, strides, dtype));
}

nb::object to_python(const etx_value& raw) {
  const EValue& value = static_cast<const EValue&>(raw);
  nb::list items;
  switch (value.tag()) {
    case Tag::None: return nb::none();
    case Tag::Tensor: {
      const Tensor tensor = value.to_tensor();
      if (tensor.const_data_ptr() == nullptr && tensor.numel() != 0) return nb::none();
      return to_array(tensor);
    }
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
        items.append(item == nullptr ? nb::object(nb::none()) : to_python(*item));
      }
      return items;
  }
}

}  // namespace python
}  // namespace etx
