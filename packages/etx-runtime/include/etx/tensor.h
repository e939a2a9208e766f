// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TENSOR_H_
#define ETX_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include <etx/abi.h>
#include <etx/dtype.h>
#include <etx/error.h>
#include <etx/span.h>

namespace etx {

using ssize_t = std::ptrdiff_t;

constexpr size_t kMaxRank = ETX_MAX_RANK;

/// Whether and how far a tensor's sizes may change.
enum class TensorShapeDynamism : uint8_t { Static = 0, DynamicBound = 1, DynamicUnbound = 2 };

/// A tensor's metadata and data pointer; owned by a Method or by the caller.
using TensorImpl = etx_tensor;

/// A handle to a TensorImpl, copied like a pointer. A subset of at::Tensor's interface.
///
/// The TensorImpl and the arrays it points at must outlive every handle.
class Tensor {
 public:
  using SizesType = int32_t;
  using StridesType = int32_t;
  using DimOrderType = uint8_t;

  explicit Tensor(TensorImpl* impl) : impl_(impl) {}

  ScalarType scalar_type() const { return static_cast<ScalarType>(impl_->dtype); }
  ScalarType dtype() const { return scalar_type(); }
  size_t element_size() const { return etx::element_size(scalar_type()); }
  ssize_t dim() const { return impl_->rank; }
  ssize_t numel() const { return static_cast<ssize_t>(impl_->numel); }
  size_t nbytes() const { return static_cast<size_t>(impl_->numel) * element_size(); }
  /// Size of dimension `d`; -rank <= d < rank.
  ssize_t size(ssize_t d) const { return impl_->sizes[d < 0 ? d + dim() : d]; }
  ssize_t stride(ssize_t d) const { return impl_->strides[d < 0 ? d + dim() : d]; }
  Span<const SizesType> sizes() const { return {impl_->sizes, impl_->rank}; }
  Span<const StridesType> strides() const { return {impl_->strides, impl_->rank}; }
  Span<const DimOrderType> dim_order() const { return {impl_->dim_order, impl_->rank}; }
  TensorShapeDynamism shape_dynamism() const {
    return static_cast<TensorShapeDynamism>(impl_->dynamism);
  }

  /// True when the elements belong to the program, and are the same in each call.
  bool is_constant() const { return (impl_->flags & ETX_TENSOR_CONSTANT) != 0; }

  /// True when the elements lie in row-major order (dim order 0, 1, 2, …).
  bool is_contiguous() const {
    for (uint8_t i = 0; i < impl_->rank; ++i) {
      if (impl_->dim_order[i] != i) return false;
    }
    return true;
  }

  template <typename T>
  const T* const_data_ptr() const {
    return static_cast<const T*>(impl_->data);
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return static_cast<T*>(impl_->data);
  }
  const void* const_data_ptr() const { return impl_->data; }
  void* mutable_data_ptr() const { return impl_->data; }

  /// Sets the sizes; strides follow from the dim order. Each size must be >= 0.
  /// Errors: NotSupported when the rank differs, a static tensor would change, or there are more
  /// elements than its memory holds.
  template <typename Size>
  Error resize(Span<const Size> sizes) const {
    if (sizes.size() != impl_->rank) return Error::NotSupported;
    bool same = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      same &= static_cast<int64_t>(sizes[i]) == static_cast<int64_t>(impl_->sizes[i]);
    }
    if (same) return Error::Ok;
    if (shape_dynamism() == TensorShapeDynamism::Static) return Error::NotSupported;
    int64_t numel = 1;
    int64_t extent = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      const int64_t size = static_cast<int64_t>(sizes[impl_->dim_order[i]]);
      if (size < 0 || size > INT32_MAX || extent > INT32_MAX) return Error::NotSupported;
      numel *= size;
      extent *= size == 0 ? 1 : size;
    }
    if (numel > impl_->capacity) return Error::NotSupported;
    for (size_t i = 0; i < sizes.size(); ++i) {
      impl_->sizes[i] = static_cast<SizesType>(sizes[i]);
    }
    impl_->numel = static_cast<intptr_t>(numel);
    set_strides(*impl_);
    return Error::Ok;
  }
  Error resize(std::initializer_list<int64_t> sizes) const {
    return resize(Span<const int64_t>(sizes.begin(), sizes.size()));
  }

  /// Fills in the strides that sizes and dim order imply; a size of 0 counts as 1.
  static void set_strides(TensorImpl& impl) {
    int64_t stride = 1;
    for (int i = impl.rank - 1; i >= 0; --i) {
      const uint8_t d = impl.dim_order[i];
      impl.strides[d] = static_cast<StridesType>(stride);
      stride *= impl.sizes[d] == 0 ? 1 : impl.sizes[d];
    }
  }

  TensorImpl* impl() const { return impl_; }

 private:
  TensorImpl* impl_;
};

}  // namespace etx

#endif  // ETX_TENSOR_H_
