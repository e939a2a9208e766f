// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_TENSOR_PTR_H_
#define ETX_HOSTED_TENSOR_PTR_H_

#include <memory>
#include <type_traits>
#include <vector>

#include <etx/tensor.h>

namespace etx {

/// A tensor that owns its sizes, strides and, where it was made from a vector or filled, its
/// elements. Copies share them. Not to be resized or written to by two threads at a time.
using TensorPtr = std::shared_ptr<Tensor>;

namespace detail {
template <typename T>
constexpr ScalarType scalar_type_of() {
  if (std::is_same_v<T, bool>) return ScalarType::Bool;
  if (std::is_same_v<T, Half>) return ScalarType::Half;
  if (std::is_same_v<T, BFloat16>) return ScalarType::BFloat16;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? ScalarType::Float : ScalarType::Double;
  constexpr ScalarType kSigned[] = {ScalarType::Char, ScalarType::Short, ScalarType::Int,
                                    ScalarType::Long};
  constexpr ScalarType kUnsigned[] = {ScalarType::Byte, ScalarType::UInt16, ScalarType::UInt32,
                                      ScalarType::UInt64};
  constexpr size_t kIndex = sizeof(T) == 8 ? 3 : sizeof(T) / 2;
  return std::is_signed_v<T> ? kSigned[kIndex] : kUnsigned[kIndex];
}
}  // namespace detail

/// A view of `data`, which must outlive it. Without `strides` (in elements, none negative) the
/// elements lie in row-major order. Null when there are more than 16 sizes, one is negative, all
/// together are too many, or the strides are not those of a dim order.
TensorPtr from_blob(void* data, std::vector<Tensor::SizesType> sizes,
                    std::vector<Tensor::StridesType> strides, ScalarType type = ScalarType::Float);
TensorPtr from_blob(void* data, std::vector<Tensor::SizesType> sizes,
                    ScalarType type = ScalarType::Float);

/// Row-major elements of its own, all 0. Null as from_blob, or when there is not enough memory.
TensorPtr zeros(std::vector<Tensor::SizesType> sizes, ScalarType type = ScalarType::Float);

/// Row-major elements copied from `data`. Null as zeros, and when their number is not that of the
/// sizes.
template <typename T>
TensorPtr make_tensor_ptr(std::vector<Tensor::SizesType> sizes, const std::vector<T>& data) {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>,
                "an element type of C++");
  TensorPtr tensor = zeros(std::move(sizes), detail::scalar_type_of<T>());
  if (tensor == nullptr || static_cast<size_t>(tensor->numel()) != data.size()) return nullptr;
  for (size_t i = 0; i < data.size(); ++i) tensor->mutable_data_ptr<T>()[i] = data[i];
  return tensor;
}
/// The same with one dimension.
template <typename T>
TensorPtr make_tensor_ptr(const std::vector<T>& data) {
  return make_tensor_ptr(std::vector<Tensor::SizesType>{static_cast<int32_t>(data.size())}, data);
}

/// Row-major elements of its own, all `value`. Null as zeros.
template <typename T>
TensorPtr full(std::vector<Tensor::SizesType> sizes, T value) {
  TensorPtr tensor = zeros(std::move(sizes), detail::scalar_type_of<T>());
  for (ssize_t i = 0; tensor != nullptr && i < tensor->numel(); ++i) {
    tensor->mutable_data_ptr<T>()[i] = value;
  }
  return tensor;
}
/// All 1, float32.
inline TensorPtr ones(std::vector<Tensor::SizesType> sizes) { return full(std::move(sizes), 1.0f); }

/// A copy with the layout of `tensor` and elements of its own: of an output, to keep it longer than
/// until the next execution. Null when there is not enough memory.
TensorPtr clone_tensor_ptr(const Tensor& tensor);

}  // namespace etx

#endif  // ETX_HOSTED_TENSOR_PTR_H_
