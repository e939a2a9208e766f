// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/tensor_ptr.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace etx {
namespace {

struct Storage {
  std::vector<Tensor::SizesType> sizes;
  std::vector<Tensor::StridesType> strides;
  std::vector<Tensor::DimOrderType> order;
  std::unique_ptr<void, void (*)(void*)> bytes{nullptr, std::free};
  TensorImpl impl{};
  Tensor tensor{&impl};
};

using StoragePtr = std::shared_ptr<Storage>;

StoragePtr make(std::vector<Tensor::SizesType> sizes, std::vector<Tensor::DimOrderType> order,
                ScalarType type) {
  if (sizes.size() > kMaxRank || element_size(type) == 0) return nullptr;
  int64_t numel = 1;
  int64_t extent = 1;
  for (const Tensor::SizesType size : sizes) {
    if (size < 0 || extent > INT32_MAX) return nullptr;
    numel *= size;
    extent *= size == 0 ? 1 : size;
  }
  if (extent > INT32_MAX) return nullptr;
  auto storage = std::make_shared<Storage>();
  storage->strides.resize(sizes.size());
  storage->sizes = std::move(sizes);
  storage->order = std::move(order);
  TensorImpl& impl = storage->impl;
  impl.sizes = storage->sizes.data();
  impl.strides = storage->strides.data();
  impl.dim_order = storage->order.data();
  impl.numel = impl.capacity = static_cast<intptr_t>(numel);
  impl.dtype = static_cast<int8_t>(type);
  impl.rank = static_cast<uint8_t>(storage->sizes.size());
  impl.dynamism = static_cast<uint8_t>(TensorShapeDynamism::DynamicBound);
  Tensor::set_strides(impl);
  return storage;
}

std::vector<Tensor::DimOrderType> row_major(size_t rank) {
  std::vector<Tensor::DimOrderType> order(std::min(rank, kMaxRank));
  std::iota(order.begin(), order.end(), Tensor::DimOrderType{0});
  return order;
}

TensorPtr handle(const StoragePtr& storage) {
  return storage == nullptr ? nullptr : TensorPtr(storage, &storage->tensor);
}

bool allocate(Storage& storage) {
  const size_t size = storage.tensor.nbytes();
  storage.bytes.reset(std::calloc(size + 1, 1));
  storage.impl.data = storage.bytes.get();
  return storage.impl.data != nullptr;
}

}  // namespace

TensorPtr from_blob(void* data, std::vector<Tensor::SizesType> sizes, ScalarType type) {
  std::vector<Tensor::DimOrderType> order = row_major(sizes.size());
  const StoragePtr storage = make(std::move(sizes), std::move(order), type);
  if (storage != nullptr) storage->impl.data = data;
  return handle(storage);
}

TensorPtr from_blob(void* data, std::vector<Tensor::SizesType> sizes,
                    std::vector<Tensor::StridesType> strides, ScalarType type) {
  if (strides.size() != sizes.size()) return nullptr;
  std::vector<Tensor::DimOrderType> order = row_major(sizes.size());
  if (order.size() != sizes.size()) return nullptr;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint8_t a, uint8_t b) { return strides[a] > strides[b]; });
  const StoragePtr storage = make(std::move(sizes), std::move(order), type);
  if (storage == nullptr) return nullptr;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (storage->sizes[i] != 1 && storage->strides[i] != strides[i]) return nullptr;
  }
  storage->impl.data = data;
  return handle(storage);
}

TensorPtr zeros(std::vector<Tensor::SizesType> sizes, ScalarType type) {
  std::vector<Tensor::DimOrderType> order = row_major(sizes.size());
  const StoragePtr storage = make(std::move(sizes), std::move(order), type);
  return storage != nullptr && allocate(*storage) ? handle(storage) : nullptr;
}

TensorPtr clone_tensor_ptr(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  const auto order = tensor.dim_order();
  const StoragePtr storage =
      make({sizes.begin(), sizes.end()}, {order.begin(), order.end()}, tensor.scalar_type());
  if (storage == nullptr || !allocate(*storage)) return nullptr;
  if (tensor.nbytes() != 0) {
    std::memcpy(storage->impl.data, tensor.const_data_ptr(), tensor.nbytes());
  }
  return handle(storage);
}

}  // namespace etx
