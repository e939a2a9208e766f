// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>
#include <etx/plugin.h>
#include <etx/prim.h>

namespace etx {
namespace {

template <typename T, typename F>
void zip(const Tensor& a, const Tensor& b, Tensor& out, F f) {
  const T* x = a.const_data_ptr<T>();
  const T* y = b.const_data_ptr<T>();
  T* z = out.mutable_data_ptr<T>();
  for (ssize_t i = 0; i < out.numel(); ++i) z[i] = f(x[i], y[i]);
}

Error add_out(Context& context, const Tensor& a, const Tensor& b, Scalar alpha, Tensor& out) {
  ETX_CHECK(context, equal(a.sizes(), b.sizes()), InvalidArgument,
            "self and other differ in shape");
  ETX_CHECK(context, a.scalar_type() == out.scalar_type() && b.scalar_type() == a.scalar_type(),
            InvalidArgument, "self, other and out differ in dtype");
  ETX_TRY(out.resize(a.sizes()));
  if (a.scalar_type() == ScalarType::Float) {
    const float scale = alpha.to<float>();
    zip<float>(a, b, out, [=](float x, float y) { return x + scale * y; });
  } else if (a.scalar_type() == ScalarType::Long) {
    const auto scale = static_cast<uint64_t>(alpha.to<int64_t>());
    zip<uint64_t>(a, b, out, [=](uint64_t x, uint64_t y) { return x + scale * y; });
  } else {
    const size_t size = a.nbytes();
    if (size != 0) std::memcpy(out.mutable_data_ptr(), a.const_data_ptr(), size);
  }
  return Error::Ok;
}

Error copy_inplace(Context& context, Tensor& self, const Tensor& src, bool) {
  ETX_CHECK(context, equal(self.sizes(), src.sizes()) && self.scalar_type() == src.scalar_type(),
            InvalidArgument, "src differs from self");
  if (src.numel() != 0) std::memcpy(self.mutable_data_ptr(), src.const_data_ptr(), src.nbytes());
  return Error::Ok;
}

/// sum(tensors), through scratch memory.
Error cat_out(Context& context, TensorList tensors, int64_t, Tensor& out) {
  ETX_CHECK(context, out.scalar_type() == ScalarType::Float, InvalidArgument, "out must be float");
  float* sums = context.allocate_temp_array<float>(static_cast<size_t>(out.numel()));
  ETX_CHECK(context, sums != nullptr, MemoryAllocationFailed, "no scratch memory");
  for (ssize_t i = 0; i < out.numel(); ++i) sums[i] = 0;
  for (size_t k = 0; k < tensors.size(); ++k) {
    ETX_CHECK(context, tensors[k].numel() == out.numel(), InvalidArgument, "shapes differ");
    ETX_CHECK(context, tensors[k].scalar_type() == ScalarType::Float, InvalidArgument, "dtype");
    for (ssize_t i = 0; i < out.numel(); ++i) sums[i] += tensors[k].const_data_ptr<float>()[i];
  }
  if (out.numel() != 0) std::memcpy(out.mutable_data_ptr(), sums, out.nbytes());
  return Error::Ok;
}

Error square_out(Context& context, const Tensor& self, Tensor& out) {
  ETX_CHECK(context,
            self.scalar_type() == ScalarType::Float && out.scalar_type() == self.scalar_type(),
            InvalidArgument, "self and out must be float");
  ETX_TRY(out.resize(self.sizes()));
  const float* x = self.const_data_ptr<float>();
  float* y = out.mutable_data_ptr<float>();
  context.parallel_for(0, out.numel(), 64, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] * x[i];
  });
  return Error::Ok;
}

Error full_out(Context& context, IntList size, Scalar value, Tensor& out) {
  ETX_CHECK(context, out.scalar_type() == ScalarType::Float, InvalidArgument, "out must be float");
  ETX_TRY(out.resize(size));
  for (ssize_t i = 0; i < out.numel(); ++i) out.mutable_data_ptr<float>()[i] = value.to<float>();
  return Error::Ok;
}

Error sym_size(Context& context, const Tensor& self, int64_t dim, EValue& out) {
  ETX_CHECK(context, dim >= -self.dim() && dim < self.dim(), InvalidArgument, "dim out of range");
  out.set(int64_t{self.size(dim)});
  return Error::Ok;
}

Error add_scalar(Context&, Scalar a, Scalar b, EValue& out) {
  if (a.is_integral() && b.is_integral()) {
    out.set(static_cast<int64_t>(static_cast<uint64_t>(a.to<int64_t>()) +
                                 static_cast<uint64_t>(b.to<int64_t>())));
  } else {
    out.set(a.to<double>() + b.to<double>());
  }
  return Error::Ok;
}

Error lt_scalar(Context&, Scalar a, Scalar b, EValue& out) {
  out.set(a.to<double>() < b.to<double>());
  return Error::Ok;
}

Error et_view(Context& context, const Tensor& self, IntList size, Tensor& out) {
  ETX_CHECK(context, size.size() == static_cast<size_t>(out.dim()), InvalidArgument, "rank");
  int64_t sizes[kMaxRank];
  int64_t known = 1;
  int inferred = -1;
  for (size_t i = 0; i < size.size(); ++i) {
    sizes[i] = size[i];
    if (size[i] == -1)
      inferred = static_cast<int>(i);
    else
      known = static_cast<int64_t>(static_cast<uint64_t>(known) * static_cast<uint64_t>(size[i]));
  }
  if (inferred >= 0) sizes[inferred] = known == 0 ? 0 : self.numel() / known;
  ETX_TRY(out.resize(Span<const int64_t>(sizes, size.size())));
  ETX_CHECK(context, out.numel() == self.numel(), InvalidArgument, "size does not fit self");
  out.impl()->data = self.impl()->data;
  return Error::Ok;
}

/// Leaves a number of another kind than the slot's, then fails.
Error spoil(Context& context, EValue& out) {
  out.set(1.5);
  return context.fail(Error::InvalidArgument, "spoiled");
}

/// The seed times 1000, and the number of the draw.
Error draw(Context& context, EValue& out) {
  const etx_random random = context.next_draw();
  out.set(static_cast<int64_t>(random.seed * 1000 + random.draws));
  return Error::Ok;
}

#ifndef ETX_FUZZ_PLUGIN
/// out = x * factor, for a factor above 0 and, where it is a constant, x too.
Error scale_out(Context& context, const Tensor& x, double factor, Tensor& out) {
  ETX_CHECK(context, factor > 0, InvalidArgument, "factor must be greater than 0");
  const float* const from = x.const_data_ptr<float>();
  for (ssize_t i = 0; context.has_data(x) && i < x.numel(); ++i) {
    ETX_CHECK(context, from[i] > 0, InvalidArgument, "x must be greater than 0");
  }
  if (context.is_loading()) return Error::Ok;
  ETX_TRY(out.resize(x.sizes()));
  for (ssize_t i = 0; i < x.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = from[i] * static_cast<float>(factor);
  }
  return Error::Ok;
}

/// Waits until the execution is cancelled.
Error wait(Context& context, EValue& out) {
  while (!context.is_cancelled()) {
  }
  out.set(int64_t{1});
  return Error::Cancelled;
}
#endif

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::add.out", add_out),
    ETX_KERNEL("aten::copy_", copy_inplace),
    ETX_KERNEL("aten::cat.out", cat_out),
    ETX_KERNEL("aten::square.out", square_out),
    ETX_KERNEL("aten::full.out", full_out),
    ETX_KERNEL("aten::sym_size.int", sym_size),
    ETX_KERNEL("executorch_prim::add.Scalar", add_scalar),
    ETX_KERNEL("executorch_prim::lt.Scalar", lt_scalar),
    ETX_KERNEL("executorch_prim::et_view.default", et_view),
    ETX_KERNEL("etx::view_at.default", prim::view_at),
    ETX_KERNEL("etx_test::spoil", spoil),
    ETX_KERNEL("etx_test::draw", draw),
#ifndef ETX_FUZZ_PLUGIN
    ETX_KERNEL("etx_test::wait", wait),
    ETX_KERNEL("etx_test::scale.out", scale_out, kChecksAtLoad),
#endif
};
constexpr etx_kernel_table kTable = {kRows, sizeof(kRows) / sizeof(kRows[0])};

struct Handle {
  const uint8_t* blob;
  size_t size;
};

/// A backend that adds the first byte of its blob to a float tensor.
etx_status init(const etx_backend*, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec* specs, size_t num_specs, void** handle) {
  if (size == 0) return context->fail(context, 0x30, "the blob is empty");
  if (num_specs == 1 && std::strcmp(specs[0].key, "bias") == 0) {
    const etx_status status = context->named_data(context, "bias", &blob, &size);
    if (status != 0) return context->fail(context, status, "there is no bias");
  }
  void* memory = context->allocate(context, sizeof(Handle), alignof(Handle));
  if (memory == nullptr) return 0x31;
  *handle = ::new (memory) Handle{static_cast<const uint8_t*>(blob), size};
  return 0;
}

bool is_float(const etx_value& value) {
  return value.tag == ETX_TAG_TENSOR &&
         value.payload.as_tensor->dtype == static_cast<int8_t>(ScalarType::Float);
}

etx_status execute(const etx_backend*, void* handle, etx_context* context, etx_value* const* args,
                   size_t num_args) {
  if (num_args != 2) return context->fail(context, 0x12, "one input and one output");
  if (!is_float(*args[0]) || !is_float(*args[1])) return 0x12;
  const Tensor in = static_cast<EValue*>(args[0])->to_tensor();
  const Tensor out = static_cast<EValue*>(args[1])->to_tensor();
  if (out.numel() != in.numel() || (out.impl()->flags & ETX_TENSOR_CONSTANT) != 0) return 0x12;
  for (ssize_t i = 0; i < in.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] =
        in.const_data_ptr<float>()[i] + static_cast<Handle*>(handle)->blob[0];
  }
  return 0;
}

constexpr etx_backend kBackend = {
    sizeof(etx_backend), "AddByte", nullptr, nullptr, init, execute, nullptr};
constexpr const etx_kernel_table* kTables[] = {&kTable};
constexpr const etx_backend* kBackends[] = {&kBackend};

}  // namespace

ETX_PLUGIN(test, "etx-test-plugin", "1.2.3", (Span<const etx_kernel_table* const>(kTables)),
           (Span<const etx_backend* const>(kBackends)))

}  // namespace etx
