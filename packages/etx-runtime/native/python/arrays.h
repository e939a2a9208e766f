// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_ARRAYS_H_
#define ETX_NATIVE_PYTHON_ARRAYS_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include <etx/tensor.h>

namespace etx {
namespace python {

/// Elements that lie in memory with any strides (in elements).
struct ArrayView {
  const void* data;
  ScalarType type;
  size_t rank;
  /// The object's own memory, and it may be written to.
  bool is_writable;
  int32_t sizes[kMaxRank];
  int64_t strides[kMaxRank];

  Span<const int32_t> shape() const { return {sizes, rank}; }
};

/// Objects that a call needs until its execution is over.
struct Keep {
  std::vector<nanobind::object> objects;
  /// What DLPack and buffers were imported as.
  std::vector<std::shared_ptr<void>> imports;
};

/// Makes NumPy's C interface usable; throws ImportError.
void load_numpy();

/// Views `object`: a NumPy array, or what has DLPack or the buffer protocol. What it makes on the
/// way goes into `keep`. Null, or why it cannot be used.
const char* view_array(nanobind::handle object, ArrayView* view, Keep* keep);

/// A 0-d array of `type` that holds a Python number; invalid when it is of another kind of number.
nanobind::object from_number(nanobind::handle number, ScalarType type);

/// A copy of a tensor: a NumPy array, or for types that NumPy lacks an etx_runtime ForeignArray.
nanobind::object copy_tensor(const Tensor& tensor);

/// A NumPy view of a tensor's memory, which `owner` keeps valid. Types that NumPy lacks appear as
/// unsigned integers of their width.
nanobind::object view_tensor(const Tensor& tensor, nanobind::handle owner, bool writable);

/// A row-major copy of an array as unsigned integers of its elements' width; invalid when `object`
/// is not an array.
nanobind::object to_bits(nanobind::handle object);

/// The same memory as elements of type `dtype`: an object with DLPack. None when `bits` is not
/// an array of elements as wide, or no array can have that type.
nanobind::object from_bits(nanobind::handle bits, const std::string& dtype);

/// True when NumPy has the tensor's type.
bool is_numpy_type(ScalarType type);

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_ARRAYS_H_
