// SPDX-License-Identifier: BSD-3-Clause
#include <etx/aten.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/zeros.h>

namespace {

int failures = 0;

#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                 \
    }                                                             \
  } while (false)

template <typename Function>
bool throws(const Function& function, const char* text) {
  try {
    function();
  } catch (const c10::Error& error) {
    if (std::strstr(error.what(), text) != nullptr) return true;
    std::printf("expected '%s' in '%s'\n", text, error.what());
  }
  return false;
}

/// There and back: the same memory, type, sizes and strides, but those of size 1.
void round_trip(const at::Tensor& tensor) {
  std::string message;
  auto shared = etx::share_with_etx(tensor, &message);
  if (!shared.ok()) std::printf("%s\n", message.c_str());
  EXPECT(shared.ok());
  if (!shared.ok()) return;
  const etx::Tensor& middle = **shared;
  EXPECT(middle.const_data_ptr() == tensor.const_data_ptr());
  EXPECT(middle.nbytes() == tensor.nbytes());
  const at::Tensor back = etx::share_with_aten(middle, *shared);
  EXPECT(back.scalar_type() == tensor.scalar_type());
  EXPECT(back.sizes() == tensor.sizes());
  EXPECT(back.const_data_ptr() == tensor.const_data_ptr());
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    const bool is_free = tensor.size(d) == 1 || tensor.numel() == 0;
    EXPECT(is_free || back.stride(d) == tensor.stride(d));
  }
}

void test_every_dtype() {
  for (int i = 0; i < etx::kNumScalarTypes; ++i) {
    const auto type = static_cast<c10::ScalarType>(i);
    if (etx::detail::has_quantizer(static_cast<etx::ScalarType>(i))) {
      EXPECT(throws([&] { etx::to_etx(type); }, "convert the tensor"));
      EXPECT(throws([&] { etx::to_aten(static_cast<etx::ScalarType>(i)); }, "quantizer"));
      continue;
    }
    EXPECT(etx::executorch_to_torch_scalar_type(
               etx::torch_to_executorch_scalar_type(c10::scalarTypeToTypeMeta(type))) == type);
    for (int64_t rank = 0; rank <= 8; ++rank) {
      std::vector<int64_t> sizes;
      for (int64_t d = 0; d < rank; ++d) sizes.push_back(1 + (d + i) % 3);
      const at::Tensor tensor = at::detail::empty_cpu(sizes, type);
      std::memset(tensor.mutable_data_ptr(), i, tensor.nbytes());
      round_trip(tensor);
      if (rank > 1) round_trip(tensor.transpose(0, rank - 1));
      if (rank > 0) round_trip(tensor.narrow(0, sizes[0] - 1, 1));
      if (rank > 0) round_trip(tensor.narrow(0, 0, 0));
    }
  }
}

void test_layouts() {
  const at::Tensor image = at::arange(2 * 3 * 4 * 5).reshape({2, 3, 4, 5});
  round_trip(image.contiguous(c10::MemoryFormat::ChannelsLast));
  round_trip(image.permute({3, 1, 0, 2}));
  round_trip(at::arange(2 * 3 * 4 * 5 * 6)
                 .reshape({2, 3, 4, 5, 6})
                 .contiguous(c10::MemoryFormat::ChannelsLast3d));
  const auto last = etx::share_with_etx(image.contiguous(c10::MemoryFormat::ChannelsLast));
  const uint8_t expected[] = {0, 2, 3, 1};
  EXPECT(std::memcmp((*last)->dim_order().data(), expected, 4) == 0);
  const auto one = at::ones({2, 1, 4, 4}).contiguous(c10::MemoryFormat::ChannelsLast);
  EXPECT((*etx::share_with_etx(one))->is_contiguous());
}

void test_sharing_keeps_memory() {
  etx::TensorPtr shared;
  {
    const at::Tensor made = at::arange(6).to(c10::kFloat).reshape({2, 3});
    shared = etx::alias_tensor_ptr_to_attensor(made);
  }
  shared->mutable_data_ptr<float>()[5] = 7;
  at::Tensor back;
  {
    const at::Tensor view = etx::alias_attensor_to_tensor_ptr(shared);
    shared.reset();
    back = view.slice(0, 1, 2);
  }
  EXPECT(back.select(0, 0).select(0, 2).item<float>() == 7);
  EXPECT(throws([&] { back.resize_({1000}); }, "not resizable"));
  float numbers[] = {1, 2, 3, 4};
  auto blob = etx::share_with_etx(at::ones({2, 2}));
  etx::Tensor target = **blob;
  target.impl()->data = numbers;
  at::Tensor view = etx::alias_attensor_to_etensor(target);
  view.mul_(2);
  EXPECT(numbers[3] == 8);
}

void test_aliasing_an_etensor() {
  auto target = etx::share_with_etx(at::zeros({2, 3}));
  const at::Tensor source = at::arange(6).to(c10::kFloat).reshape({2, 3});
  etx::alias_etensor_to_attensor(source, **target);
  EXPECT((*target)->const_data_ptr<float>()[4] == 4);
  const auto alias = [&](const at::Tensor& given) {
    return [&target, given] { etx::alias_etensor_to_attensor(given, **target); };
  };
  EXPECT(throws(alias(at::zeros({2, 3}, c10::kLong)), "expected dtype float32, got int64"));
  EXPECT(throws(alias(at::zeros({3, 2})), "expected sizes [2, 3], got [3, 2]"));
  EXPECT(throws(alias(at::zeros({3, 2}).t()), "expected strides [3, 1], got [1, 2]"));
  EXPECT((*target)->const_data_ptr<float>()[4] == 4);
}

void refuses(const at::Tensor& tensor, const char* text) {
  std::string message;
  const auto shared = etx::share_with_etx(tensor, &message);
  EXPECT(!shared.ok() && shared.error() == etx::Error::NotSupported);
  const bool is_said = message.find(text) != std::string::npos;
  if (!is_said) std::printf("expected '%s' in '%s'\n", text, message.c_str());
  EXPECT(is_said);
  EXPECT(throws([&] { etx::alias_tensor_ptr_to_attensor(tensor); }, text));
}

void test_refusals() {
  const at::Tensor plain = at::ones({4, 4});
  refuses(at::Tensor(), "the tensor is undefined");
  refuses(plain.slice(1, 0, 4, 2), "those of no dim order; call .contiguous()");
  refuses(plain.slice(1, 0, 2), "call .contiguous()");
  refuses(at::ones({1, 4}).expand({3, 4}), "call .contiguous()");
  refuses(plain.to_sparse(), "expected strided; call .to_dense()");
  refuses(at::quantize_per_tensor(plain, 0.1, 0, c10::kQInt8), "quantized; call .int_repr()");
  refuses(at::empty({2}, at::TensorOptions().device(c10::kMeta)), "device meta, expected cpu");
  refuses(at::ones({2}).set_requires_grad(true), "requires grad; call .detach()");
  refuses(at::ones({2}, c10::kComplexFloat).conj(), "lazy conjugate; call .resolve_conj()");
  refuses(at::imag(at::ones({2}, c10::kComplexFloat).conj()), "call .resolve_");
  refuses(at::ones(std::vector<int64_t>(17, 1)), "17 dimensions, expected at most 16");
}

}  // namespace

int main() {
  test_every_dtype();
  test_layouts();
  test_sharing_keeps_memory();
  test_aliasing_an_etensor();
  test_refusals();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
