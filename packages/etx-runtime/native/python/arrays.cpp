// SPDX-License-Identifier: BSD-3-Clause
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION

#include "arrays.h"

#include <nanobind/ndarray.h>
#include <numpy/arrayobject.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../hosted/strided_copy.h"

namespace nb = nanobind;

namespace etx {
namespace python {
namespace {

using Code = nb::dlpack::dtype_code;

constexpr int kNoNumpy = -1;

struct DtypeRow {
  ScalarType type;
  Code code;
  uint8_t bits;
  int numpy;
};

/// The first row of a DLPack or NumPy type is the one that arrays of it have.
constexpr DtypeRow kDtypes[] = {
    {ScalarType::Float, Code::Float, 32, NPY_FLOAT32},
    {ScalarType::Long, Code::Int, 64, NPY_INT64},
    {ScalarType::Bool, Code::Bool, 8, NPY_BOOL},
    {ScalarType::Int, Code::Int, 32, NPY_INT32},
    {ScalarType::Byte, Code::UInt, 8, NPY_UINT8},
    {ScalarType::Char, Code::Int, 8, NPY_INT8},
    {ScalarType::Short, Code::Int, 16, NPY_INT16},
    {ScalarType::Half, Code::Float, 16, NPY_FLOAT16},
    {ScalarType::Double, Code::Float, 64, NPY_FLOAT64},
    {ScalarType::BFloat16, Code::Bfloat, 16, kNoNumpy},
    {ScalarType::UInt16, Code::UInt, 16, NPY_UINT16},
    {ScalarType::UInt32, Code::UInt, 32, NPY_UINT32},
    {ScalarType::UInt64, Code::UInt, 64, NPY_UINT64},
    {ScalarType::ComplexHalf, Code::Complex, 32, kNoNumpy},
    {ScalarType::ComplexFloat, Code::Complex, 64, NPY_COMPLEX64},
    {ScalarType::ComplexDouble, Code::Complex, 128, NPY_COMPLEX128},
    {ScalarType::Float8_e4m3fn, Code::Float8_E4M3FN, 8, kNoNumpy},
    {ScalarType::Float8_e4m3fnuz, Code::Float8_E4M3FNUZ, 8, kNoNumpy},
    {ScalarType::Float8_e5m2, Code::Float8_E5M2, 8, kNoNumpy},
    {ScalarType::Float8_e5m2fnuz, Code::Float8_E5M2FNUZ, 8, kNoNumpy},
    {ScalarType::QInt8, Code::Int, 8, NPY_INT8},
    {ScalarType::QUInt8, Code::UInt, 8, NPY_UINT8},
    {ScalarType::QInt32, Code::Int, 32, NPY_INT32},
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

/// The type of a NumPy array, those of ml_dtypes by their names; false for others.
bool find_type(PyArrayObject* array, ScalarType* type) {
  const int number = PyArray_TYPE(array);
  for (const DtypeRow& row : kDtypes) {
    if (row.numpy != number) continue;
    *type = row.type;
    return true;
  }
  const auto same_width = [array](ScalarType candidate) {
    return static_cast<size_t>(PyArray_ITEMSIZE(array)) == element_size(candidate);
  };
  if (number < NPY_USERDEF) {
    *type = number == NPY_LONGLONG ? ScalarType::Long : ScalarType::UInt64;
    return (number == NPY_LONGLONG || number == NPY_ULONGLONG) && same_width(*type);
  }
  const nb::handle descr(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
  const nb::object name = descr.attr("name");
  for (const DtypeRow& row : kDtypes) {
    if (row.numpy != kNoNumpy || !nb::str(name).equal(nb::str(to_string(row.type)))) continue;
    *type = row.type;
    return same_width(row.type);
  }
  return false;
}

constexpr char kNoType[] = "arrays of this dtype are not supported";
constexpr char kTooMany[] = "the array has more than 16 dimensions";
constexpr char kNoArray[] = "";

const char* view_numpy(PyArrayObject* array, ArrayView* view, Keep* keep) {
  if (!find_type(array, &view->type)) return kNoType;
  const npy_intp item = PyArray_ITEMSIZE(array);
  const int rank = PyArray_NDIM(array);
  if (rank > static_cast<int>(kMaxRank)) return kTooMany;
  bool is_regular = PyArray_ISNOTSWAPPED(array);
  for (int i = 0; i < rank; ++i) is_regular &= PyArray_STRIDE(array, i) % item == 0;
  view->is_writable = is_regular && PyArray_ISWRITEABLE(array);
  if (!is_regular) {
    PyArray_Descr* descr = PyArray_DescrFromType(PyArray_TYPE(array));
    PyObject* copy = PyArray_FromArray(array, descr, NPY_ARRAY_CARRAY);
    if (copy == nullptr) throw nb::python_error();
    keep->objects.push_back(nb::steal(copy));
    array = reinterpret_cast<PyArrayObject*>(copy);
  }
  view->data = PyArray_DATA(array);
  view->rank = static_cast<size_t>(rank);
  for (int i = 0; i < rank; ++i) {
    const npy_intp size = PyArray_DIM(array, i);
    view->sizes[i] = size > INT32_MAX ? -1 : static_cast<int32_t>(size);
    view->strides[i] = PyArray_STRIDE(array, i) / item;
  }
  return nullptr;
}

/// Tells what `question`, a method of torch's tensors, answers. DLPack gives the memory of those
/// that are conjugated or negated only when read as it is.
bool holds(nb::handle object, const char* question) {
  return nb::hasattr(object, question) && nb::cast<bool>(object.attr(question)());
}

}  // namespace

void load_numpy() {
  static std::atomic<bool> is_loaded{false};
  if (is_loaded.load(std::memory_order_acquire)) return;
  if (_import_array() < 0) throw nb::python_error();
  is_loaded.store(true, std::memory_order_release);
}

const char* view_array(nb::handle object, ArrayView* view, Keep* keep) {
  if (PyArray_Check(object.ptr())) {
    return view_numpy(reinterpret_cast<PyArrayObject*>(object.ptr()), view, keep);
  }
  const bool is_pending = holds(object, "is_conj") || holds(object, "is_neg");
  if (is_pending) {
    keep->objects.push_back(object.attr("resolve_conj")().attr("resolve_neg")());
    object = keep->objects.back();
  }
  nb::ndarray<> writable;
  view->is_writable = nb::try_cast(object, writable);
  nb::ndarray<nb::ro> array(writable);
  if (!view->is_writable && !nb::try_cast(object, array)) return kNoArray;
  if (array.device_type() != nb::device::cpu::value) return "the array is not in the CPU's memory";
  const DtypeRow* row = find_row(array.dtype());
  if (row == nullptr) return kNoType;
  if (array.ndim() > kMaxRank) return kTooMany;
  view->data = array.data();
  view->type = row->type;
  view->rank = array.ndim();
  for (size_t i = 0; i < array.ndim(); ++i) {
    view->sizes[i] = array.shape(i) > INT32_MAX ? -1 : static_cast<int32_t>(array.shape(i));
    view->strides[i] = array.stride(i);
  }
  if (is_pending) view->is_writable = false;
  keep->imports.push_back(std::make_shared<nb::ndarray<nb::ro>>(std::move(array)));
  return nullptr;
}

nb::object from_number(nb::handle number, ScalarType type) {
  const DtypeRow* row = find_row(type);
  PyObject* raw = number.ptr();
  if (row == nullptr || row->numpy == kNoNumpy) return nb::object();
  const bool takes_float = is_floating(type) || PyTypeNum_ISCOMPLEX(row->numpy);
  const bool takes_int = takes_float || type != ScalarType::Bool;
  if (PyFloat_Check(raw) ? !takes_float : PyBool_Check(raw) ? false : !takes_int) {
    return nb::object();
  }
  PyArray_Descr* descr = PyArray_DescrFromType(row->numpy);
  PyObject* array = PyArray_FromAny(raw, descr, 0, 0, NPY_ARRAY_CARRAY, nullptr);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

bool is_numpy_type(ScalarType type) {
  const DtypeRow* row = find_row(type);
  return row != nullptr && row->numpy != kNoNumpy;
}

namespace {

/// A row-major copy with the dimensions in the order in which they lie, then turned back.
nb::object copy_to_numpy(const Tensor& tensor, int number) {
  const int rank = static_cast<int>(tensor.dim());
  npy_intp dims[kMaxRank];
  npy_intp order[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    const uint8_t from = tensor.dim_order()[static_cast<size_t>(i)];
    dims[i] = tensor.sizes()[from];
    order[from] = i;
  }
  const nb::object array =
      nb::steal(PyArray_New(&PyArray_Type, rank, dims, number, nullptr, nullptr, 0, 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  auto* raw = reinterpret_cast<PyArrayObject*>(array.ptr());
  if (tensor.nbytes() != 0) {
    std::memcpy(PyArray_DATA(raw), tensor.const_data_ptr(), tensor.nbytes());
  }
  if (tensor.is_contiguous()) return array;
  PyArray_Dims axes = {order, rank};
  PyObject* turned = PyArray_Transpose(raw, &axes);
  if (turned == nullptr) throw nb::python_error();
  return nb::steal(turned);
}

int unsigned_of_width(size_t bytes) {
  switch (bytes) {
    case 1: return NPY_UINT8;
    case 2: return NPY_UINT16;
    case 4: return NPY_UINT32;
    default: return NPY_UINT64;
  }
}

}  // namespace

nb::object copy_tensor(const Tensor& tensor) {
  const DtypeRow* row = find_row(tensor.scalar_type());
  if (row == nullptr) return copy_to_numpy(tensor, unsigned_of_width(tensor.element_size()));
  if (row->numpy != kNoNumpy) return copy_to_numpy(tensor, row->numpy);
  const nb::object bits = copy_to_numpy(tensor, unsigned_of_width(tensor.element_size()));
  return nb::module_::import_("etx_runtime.foreign")
      .attr("ForeignArray")(bits, to_string(row->type));
}

nb::object to_bits(nb::handle object) {
  load_numpy();
  ArrayView view;
  Keep keep;
  if (view_array(object, &view, &keep) != nullptr) return nb::object();
  npy_intp dims[kMaxRank];
  int32_t strides[kMaxRank];
  int64_t step = 1;
  for (size_t i = view.rank; i-- > 0;) {
    dims[i] = view.sizes[i];
    strides[i] = static_cast<int32_t>(step);
    step *= view.sizes[i];
  }
  const size_t width = element_size(view.type);
  PyObject* array = PyArray_New(&PyArray_Type, static_cast<int>(view.rank), dims,
                                unsigned_of_width(width), nullptr, nullptr, 0, 0, nullptr);
  if (array == nullptr) throw nb::python_error();
  nb::object result = nb::steal(array);
  if (step == 0) return result;
  copy_strided(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)), strides, view.data,
               view.strides, view.sizes, view.rank, width);
  return result;
}

nb::object from_bits(nb::handle bits, const std::string& dtype) {
  load_numpy();
  ArrayView view;
  Keep keep;
  const DtypeRow* row = nullptr;
  for (const DtypeRow& candidate : kDtypes) {
    if (dtype == to_string(candidate.type)) row = &candidate;
  }
  if (row == nullptr || view_array(bits, &view, &keep) != nullptr ||
      element_size(view.type) != element_size(row->type)) {
    return nb::none();
  }
  size_t shape[kMaxRank];
  for (size_t i = 0; i < view.rank; ++i) shape[i] = static_cast<size_t>(view.sizes[i]);
  const nb::dlpack::dtype kind = {static_cast<uint8_t>(row->code), row->bits, 1};
  void* data = const_cast<void*>(view.data);
  return nb::cast(nb::ndarray<nb::array_api>(data, view.rank, shape, bits, view.strides, kind));
}

nb::object view_tensor(const Tensor& tensor, nb::handle owner, bool writable) {
  const DtypeRow* row = find_row(tensor.scalar_type());
  const bool known = row != nullptr && row->numpy != kNoNumpy;
  const int number = known ? row->numpy : unsigned_of_width(tensor.element_size());
  const int rank = static_cast<int>(tensor.dim());
  npy_intp dims[kMaxRank];
  npy_intp strides[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    dims[i] = tensor.size(i);
    strides[i] = tensor.stride(i) * static_cast<npy_intp>(tensor.element_size());
  }
  static char nothing[16];
  void* data = tensor.numel() == 0 ? nothing : tensor.mutable_data_ptr();
  PyObject* array = PyArray_New(&PyArray_Type, rank, dims, number, strides, data, 0,
                                writable ? NPY_ARRAY_WRITEABLE : 0, nullptr);
  if (array == nullptr) throw nb::python_error();
  const nb::object result = nb::steal(array);
  Py_XINCREF(owner.ptr());
  auto* raw = reinterpret_cast<PyArrayObject*>(array);
  if (owner.is_valid() && PyArray_SetBaseObject(raw, owner.ptr()) < 0) throw nb::python_error();
  return result;
}

}  // namespace python
}  // namespace etx
