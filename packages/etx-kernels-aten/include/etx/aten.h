// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ATEN_H_
#define ETX_ATEN_H_

/// at::Tensor <-> etx::Tensor over the same memory; nothing is copied. Header-only: it needs the
/// headers of torch and of etx-runtime where it is compiled, and torch's libraries to link.
///
/// What cannot be shared is refused with a text that says why and what to do.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <etx/hosted/tensor_ptr.h>
#include <etx/result.h>
#include <etx/tensor.h>

namespace etx {

/// The same number names the same type in both, from 0 to 29.
/// Throws c10::TypeError for a type that a program cannot hold, or that has quantizers in ATen.
inline ScalarType to_etx(c10::ScalarType type);
inline c10::ScalarType to_aten(ScalarType type);

/// Why no etx::Tensor can lie on the memory of `tensor`, and what to do; empty when one can.
inline std::string why_not_shared(const at::Tensor& tensor);

/// An etx::Tensor over the memory of `tensor`, which it keeps alive: of static sizes and the dim
/// order that its strides say. To write through it writes to `tensor`; do so only where nobody else
/// reads or writes it. A `resize_` or `set_` of `tensor` afterwards leaves the result dangling.
/// Errors: NotSupported with a `message` where `why_not_shared` has one.
inline Result<TensorPtr> share_with_etx(const at::Tensor& tensor, std::string* message = nullptr);

/// An at::Tensor over the memory of `tensor`, of its present sizes and strides. `owner` is kept as
/// long as any alias of the result; without one the memory must outlive them: that of a method's
/// output until the next execution. Its storage cannot grow.
/// Throws c10::TypeError as to_aten, c10::ValueError for a tensor without memory.
inline at::Tensor share_with_aten(const Tensor& tensor, std::shared_ptr<void> owner = nullptr);

/// ExecuTorch's names. These throw c10::ValueError where the functions above return an error.
inline at::Tensor alias_attensor_to_etensor(const Tensor& etensor) {
  return share_with_aten(etensor);
}
/// Keeps `etensor` alive.
inline at::Tensor alias_attensor_to_tensor_ptr(const TensorPtr& etensor) {
  TORCH_CHECK_VALUE(etensor != nullptr, "expected a tensor, got a null pointer");
  return share_with_aten(*etensor, etensor);
}
/// Keeps `tensor` alive.
inline TensorPtr alias_tensor_ptr_to_attensor(const at::Tensor& tensor) {
  std::string message;
  Result<TensorPtr> shared = share_with_etx(tensor, &message);
  TORCH_CHECK_VALUE(shared.ok(), message);
  return std::move(shared.get());
}
/// Points `mutable_etensor` at the memory of `tensor`, which must outlive its use and have its
/// dtype, sizes and strides.
inline void alias_etensor_to_attensor(const at::Tensor& tensor, Tensor& mutable_etensor);
inline ScalarType torch_to_executorch_scalar_type(caffe2::TypeMeta type) {
  return to_etx(c10::typeMetaToScalarType(type));
}
inline c10::ScalarType executorch_to_torch_scalar_type(ScalarType type) { return to_aten(type); }

namespace detail {

inline bool has_quantizer(ScalarType type) {
  return type == ScalarType::QInt8 || type == ScalarType::QUInt8 || type == ScalarType::QInt32 ||
         type == ScalarType::QUInt4x2 || type == ScalarType::QUInt2x4;
}

using DimOrder = std::array<uint8_t, kMaxRank>;

/// True when the strides are those that the sizes give in this order; of size 1 they do not matter.
inline bool fits_order(c10::IntArrayRef sizes, c10::IntArrayRef strides, const DimOrder& order) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    const size_t d = order[i];
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

/// Finds the dim order of sizes and strides: of several the one that counts up, then channels last.
inline bool find_order(c10::IntArrayRef sizes, c10::IntArrayRef strides, DimOrder* order) {
  const auto rank = static_cast<uint8_t>(sizes.size());
  for (uint8_t i = 0; i < rank; ++i) (*order)[i] = i;
  const bool is_empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  if (is_empty || fits_order(sizes, strides, *order)) return true;
  if (rank > 2) {
    std::rotate(order->begin() + 1, order->begin() + 2, order->begin() + rank);
    if (fits_order(sizes, strides, *order)) return true;
    std::sort(order->begin(), order->begin() + rank);
  }
  std::stable_sort(order->begin(), order->begin() + rank, [&](uint8_t a, uint8_t b) {
    return strides[a] != strides[b] ? strides[a] > strides[b] : sizes[a] > sizes[b];
  });
  return fits_order(sizes, strides, *order);
}

/// What `share_with_etx` hands out a part of.
struct SharedTensor {
  explicit SharedTensor(at::Tensor kept) : source(std::move(kept)), tensor(&impl) {}
  at::Tensor source;
  std::array<int32_t, kMaxRank> sizes{};
  std::array<int32_t, kMaxRank> strides{};
  DimOrder order{};
  TensorImpl impl{};
  Tensor tensor;
};

/// The storage of memory that has a length and cannot grow.
inline c10::Storage fixed_storage(void* data, size_t nbytes, std::shared_ptr<void> owner) {
  c10::DataPtr pointer(data, c10::Device(c10::kCPU));
  if (owner != nullptr) {
    auto kept = std::make_unique<std::shared_ptr<void>>(std::move(owner));
    const auto release = [](void* kept_) { delete static_cast<std::shared_ptr<void>*>(kept_); };
    pointer = c10::DataPtr(data, kept.get(), release, c10::Device(c10::kCPU));
    static_cast<void>(kept.release());
  }
  return c10::Storage(c10::Storage::use_byte_size_t{}, nbytes, std::move(pointer), nullptr, false);
}

inline at::Tensor on_storage(c10::Storage storage, c10::ScalarType type, c10::IntArrayRef sizes,
                             c10::IntArrayRef strides) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

/// Sizes or strides as ATen has them.
class Longs {
 public:
  explicit Longs(Span<const int32_t> numbers) : size_(numbers.size()) {
    std::copy(numbers.begin(), numbers.end(), longs_.begin());
  }
  operator c10::IntArrayRef() const { return {longs_.data(), size_}; }

 private:
  std::array<int64_t, kMaxRank> longs_{};
  size_t size_;
};

}  // namespace detail

ScalarType to_etx(c10::ScalarType type) {
  const auto same = static_cast<ScalarType>(type);
  TORCH_CHECK_TYPE(is_valid(same) && !detail::has_quantizer(same), "dtype ", c10::toString(type),
                   ": no program can hold it; convert the tensor with .to()");
  return same;
}

c10::ScalarType to_aten(ScalarType type) {
  TORCH_CHECK_TYPE(is_valid(type) && !detail::has_quantizer(type), "dtype ", to_string(type),
                   ": torch has it only with a quantizer; use the integers beneath it");
  return static_cast<c10::ScalarType>(type);
}

std::string why_not_shared(const at::Tensor& tensor) {
  if (!tensor.defined()) return "the tensor is undefined; give one that has elements";
  if (tensor.key_set().has_any(c10::DispatchKeySet(
          {c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
           c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize}))) {
    return "the tensor is a subclass or within a transform, and has no memory of its own; give a "
           "plain one";
  }
  if (tensor.layout() != c10::kStrided) {
    return "the tensor's layout is " + c10::str(tensor.layout()) +
           ", expected strided; call .to_dense()";
  }
  if (!tensor.device().is_cpu()) {
    return "the tensor is on device " + tensor.device().str() + ", expected cpu; call .cpu()";
  }
  const auto type = static_cast<ScalarType>(tensor.scalar_type());
  if (tensor.is_quantized() || detail::has_quantizer(type)) {
    return "the tensor is quantized; call .int_repr() or .dequantize()";
  }
  if (!is_valid(type)) {
    return std::string("the tensor is of dtype ") + c10::toString(tensor.scalar_type()) +
           ", which no program can hold; convert it with .to()";
  }
  if (tensor.requires_grad()) return "the tensor requires grad; call .detach()";
  if (tensor.is_conj()) return "the tensor is a lazy conjugate; call .resolve_conj()";
  if (tensor.is_neg()) return "the tensor is a lazy negation; call .resolve_neg()";
  if (tensor._is_zerotensor() || !tensor.has_storage()) {
    return "the tensor has no memory; call .clone()";
  }
  if (tensor.dim() > static_cast<int64_t>(kMaxRank)) {
    return "the tensor has " + std::to_string(tensor.dim()) + " dimensions, expected at most " +
           std::to_string(kMaxRank) + "; merge some with .flatten()";
  }
  int64_t extent = 1;
  for (const int64_t size : tensor.sizes()) {
    const bool fits = size <= INT32_MAX && extent <= INT32_MAX;
    if (!fits) return "the tensor has strides or sizes over 2**31 - 1; give it in parts";
    extent *= std::max<int64_t>(size, 1);
  }
  detail::DimOrder order{};
  if (!detail::find_order(tensor.sizes(), tensor.strides(), &order)) {
    return "the tensor's strides " + c10::str(tensor.strides()) + " for sizes " +
           c10::str(tensor.sizes()) + " are those of no dim order; call .contiguous()";
  }
  return "";
}

Result<TensorPtr> share_with_etx(const at::Tensor& tensor, std::string* message) {
  std::string reason = why_not_shared(tensor);
  if (!reason.empty()) {
    if (message != nullptr) *message = std::move(reason);
    return Error::NotSupported;
  }
  auto shared = std::make_shared<detail::SharedTensor>(tensor);
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), shared->sizes.begin());
  detail::find_order(tensor.sizes(), tensor.strides(), &shared->order);
  TensorImpl& impl = shared->impl;
  impl.data = tensor.mutable_data_ptr();
  impl.sizes = shared->sizes.data();
  impl.strides = shared->strides.data();
  impl.dim_order = shared->order.data();
  impl.numel = impl.capacity = tensor.numel();
  impl.dtype = static_cast<int8_t>(tensor.scalar_type());
  impl.rank = static_cast<uint8_t>(tensor.dim());
  impl.dynamism = static_cast<uint8_t>(TensorShapeDynamism::Static);
  Tensor::set_strides(impl);
  return TensorPtr(shared, &shared->tensor);
}

at::Tensor share_with_aten(const Tensor& tensor, std::shared_ptr<void> owner) {
  const c10::ScalarType type = to_aten(tensor.scalar_type());
  void* const data = tensor.mutable_data_ptr();
  TORCH_CHECK_VALUE(data != nullptr || tensor.numel() == 0,
                    "the tensor has no memory; execute the method first, or bind some");
  return detail::on_storage(detail::fixed_storage(data, tensor.nbytes(), std::move(owner)), type,
                            detail::Longs(tensor.sizes()), detail::Longs(tensor.strides()));
}

void alias_etensor_to_attensor(const at::Tensor& tensor, Tensor& mutable_etensor) {
  const TensorPtr shared = alias_tensor_ptr_to_attensor(tensor);
  TORCH_CHECK_VALUE(shared->scalar_type() == mutable_etensor.scalar_type(), "expected dtype ",
                    to_string(mutable_etensor.scalar_type()), ", got ",
                    to_string(shared->scalar_type()));
  TORCH_CHECK_VALUE(c10::IntArrayRef(detail::Longs(mutable_etensor.sizes())) == tensor.sizes(),
                    "expected sizes ", c10::IntArrayRef(detail::Longs(mutable_etensor.sizes())),
                    ", got ", tensor.sizes());
  for (ssize_t d = 0; d < shared->dim(); ++d) {
    TORCH_CHECK_VALUE(shared->size(d) == 1 || shared->numel() == 0 ||
                          tensor.stride(d) == mutable_etensor.stride(d),
                      "expected strides ",
                      c10::IntArrayRef(detail::Longs(mutable_etensor.strides())), ", got ",
                      tensor.strides(), "; call .contiguous() or convert the memory format");
  }
  mutable_etensor.impl()->data = shared->mutable_data_ptr();
}

}  // namespace etx

#endif  // ETX_ATEN_H_
