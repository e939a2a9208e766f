// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TENSOR_H_
#define ETX_TENSOR_H_

/// In the place of etx-runtime's header of this name: the Tensor that kernels are written for, with
/// an at::Tensor beneath. What kernels ask of theirs is asked of that, as far as ATen has it.

#include <ATen/core/Tensor.h>

#include <etx/abi.h>
#include <etx/dtype.h>
#include <etx/error.h>
#include <etx/span.h>

namespace etx {

using ssize_t = std::ptrdiff_t;
constexpr size_t kMaxRank = ETX_MAX_RANK;
enum class TensorShapeDynamism : uint8_t { Static = 0, DynamicBound = 1, DynamicUnbound = 2 };
using TensorImpl = etx_tensor;

class Tensor {
 public:
  using SizesType = int64_t;
  using StridesType = int64_t;
  using DimOrderType = uint8_t;

  explicit Tensor(TensorImpl* impl) : impl_(impl), aten_(over(*impl)) {}

  ScalarType scalar_type() const { return static_cast<ScalarType>(aten_.scalar_type()); }
  ScalarType dtype() const { return scalar_type(); }
  size_t element_size() const { return static_cast<size_t>(aten_.element_size()); }
  ssize_t dim() const { return aten_.dim(); }
  ssize_t numel() const { return aten_.numel(); }
  size_t nbytes() const { return aten_.nbytes(); }
  ssize_t size(ssize_t d) const { return aten_.size(d); }
  ssize_t stride(ssize_t d) const { return aten_.stride(d); }
  Span<const SizesType> sizes() const { return {aten_.sizes().data(), aten_.sizes().size()}; }
  Span<const StridesType> strides() const {
    return {aten_.strides().data(), aten_.strides().size()};
  }
  bool is_contiguous() const { return aten_.is_contiguous(); }
  template <typename T>
  const T* const_data_ptr() const {
    return static_cast<const T*>(aten_.const_data_ptr());
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return static_cast<T*>(aten_.mutable_data_ptr());
  }
  const void* const_data_ptr() const { return aten_.const_data_ptr(); }
  void* mutable_data_ptr() const { return aten_.mutable_data_ptr(); }

  template <typename Size>
  Error resize(Span<const Size> sizes) const {
    std::vector<int64_t> wide(sizes.begin(), sizes.end());
    aten_.unsafeGetTensorImpl()->set_sizes_contiguous(wide);
    return Error::Ok;
  }
  Error resize(std::initializer_list<int64_t> sizes) const {
    return resize(Span<const int64_t>(sizes.begin(), sizes.size()));
  }

  /// What ATen does not have.
  Span<const DimOrderType> dim_order() const { return {impl_->dim_order, impl_->rank}; }
  TensorShapeDynamism shape_dynamism() const {
    return static_cast<TensorShapeDynamism>(impl_->dynamism);
  }
  bool is_constant() const { return (impl_->flags & ETX_TENSOR_CONSTANT) != 0; }
  TensorImpl* impl() const { return impl_; }

 private:
  static at::Tensor over(const TensorImpl& impl) {
    const auto type = static_cast<c10::ScalarType>(impl.dtype);
    c10::Storage storage(c10::Storage::use_byte_size_t{},
                         static_cast<size_t>(impl.capacity) * c10::elementSize(type),
                         c10::DataPtr(impl.data, c10::Device(c10::kCPU)), nullptr, false);
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
        c10::scalarTypeToTypeMeta(type));
    made.unsafeGetTensorImpl()->set_sizes_and_strides(
        std::vector<int64_t>(impl.sizes, impl.sizes + impl.rank),
        std::vector<int64_t>(impl.strides, impl.strides + impl.rank));
    return made;
  }

  TensorImpl* impl_;
  at::Tensor aten_;
};

}  // namespace etx

#endif  // ETX_TENSOR_H_
