// SPDX-License-Identifier: BSD-3-Clause
#include "core/map.h"

#include "core/broadcast.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = kIsSmall ? 256 : 1024;
constexpr int kTensors = kMaxOperands + 1;
constexpr int kOut = kMaxOperands;

/// True when no operand needs a conversion and each is laid out as `out` is or is one element.
bool is_flat(Span<const Operand> in, const Tensor& out, const Map& map, uint32_t& scalars) {
  bool any_full = false;
  bool flat = out.scalar_type() == map.out_as;
  for (size_t k = 0; k < in.size(); ++k) {
    flat &= !in[k].needs_conversion();
    if (in[k].impl == nullptr) {
      scalars |= 1u << k;
      continue;
    }
    const Tensor tensor(in[k].impl);
    if (same_layout(tensor, out)) {
      any_full = true;
    } else if (tensor.numel() == 1 && tensor.dim() <= out.dim()) {
      scalars |= 1u << k;
    } else {
      return false;
    }
  }
  return flat && any_full;
}

void run_flat(Context& context, Span<const Operand> in, const Tensor& out, const Map& map,
              uint32_t scalars) {
  context.parallel_for(0, out.numel(), map.grain, [&](int64_t begin, int64_t end) {
    const void* data[kMaxOperands] = {};
    for (size_t k = 0; k < in.size(); ++k) {
      const int64_t first = (scalars >> k & 1u) != 0 ? 0 : begin;
      data[k] = static_cast<const char*>(in[k].data) +
                first * static_cast<int64_t>(element_size(in[k].as));
    }
    char* y = out.mutable_data_ptr<char>() + begin * static_cast<int64_t>(out.element_size());
    map.loop(map.user, data, scalars, y, end - begin);
  });
}

Error broadcast(Context& context, Span<const Operand> in, const Tensor& out) {
  ssize_t rank = 0;
  for (const Operand& operand : in) {
    if (operand.impl != nullptr && operand.impl->rank > rank) rank = operand.impl->rank;
  }
  Shape shape;
  for (ssize_t d = 0; d < rank; ++d) {
    int64_t size = 1;
    for (const Operand& operand : in) {
      if (operand.impl == nullptr) continue;
      const ssize_t own = d - (rank - operand.impl->rank);
      const int64_t given = own < 0 ? 1 : operand.impl->sizes[own];
      ETX_CHECK(context, given == 1 || size == 1 || given == size, InvalidArgument,
                "sizes of the inputs must be equal or 1, counted from the last dimension");
      if (given != 1) size = given;
    }
    shape.push(size);
  }
  return resize_out(context, out, shape);
}

/// The innermost level of a nest, whose operands may need gathering and conversion.
struct Inner {
  Span<const Operand> in;
  const Map& map;
  ScalarType out_dtype;
  bool gathered[kMaxOperands] = {};
  uint32_t scalars = 0;
  const int64_t* stride;

  Inner(Span<const Operand> operands, const Map& m, ScalarType dtype, const int64_t* strides)
      : in(operands), map(m), out_dtype(dtype), stride(strides) {
    for (size_t k = 0; k < in.size(); ++k) {
      if (stride[k] == 0) scalars |= 1u << k;
      gathered[k] = in[k].needs_conversion() || (stride[k] != 0 && stride[k] != 1);
    }
  }

  bool direct() const {
    bool any = out_dtype != map.out_as;
    for (size_t k = 0; k < in.size(); ++k) any |= gathered[k];
    return !any;
  }

  void run(const void* const* data, char* out, int64_t n) const {
    if (direct()) return map.loop(map.user, data, scalars, out, n);
    alignas(64) unsigned char blocks[kTensors][kBlock * 8];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = min(n - i, kBlock);
      const void* pieces[kMaxOperands] = {};
      for (size_t k = 0; k < in.size(); ++k) {
        const char* piece = static_cast<const char*>(data[k]) +
                            i * stride[k] * static_cast<int64_t>(element_size(in[k].dtype));
        pieces[k] = piece;
        if (!gathered[k]) continue;
        cast_through(piece, in[k].dtype, stride[k], in[k].through, blocks[k], in[k].as,
                     stride[k] == 0 ? 1 : count);
        pieces[k] = blocks[k];
      }
      char* y = out + i * static_cast<int64_t>(element_size(out_dtype));
      if (out_dtype == map.out_as) {
        map.loop(map.user, pieces, scalars, y, count);
      } else {
        map.loop(map.user, pieces, scalars, blocks[kOut], count);
        cast(blocks[kOut], map.out_as, 1, y, out_dtype, count);
      }
    }
  }
};

/// Two levels of 4-byte elements, the inner one so short that a call for each of its rows takes
/// longer than to write operands that are one element a row, or the same row, into whole blocks.
struct ShortRows {
  using Element = uint32_t;
  const Nest<kTensors>& nest;
  const Inner& run;
  const int64_t inner, most;
  uint32_t scalars = 0, filled = 0;

  ShortRows(const Nest<kTensors>& levels, const Inner& loop)
      : nest(levels), run(loop), inner(levels.inner()), most(kBlock / inner) {
    for (size_t k = 0; k < run.in.size(); ++k) {
      if (nest.stride[0][k] == 0 && nest.stride[1][k] == 0) {
        scalars |= 1u << k;
      } else if (nest.stride[0][k] != 1 || nest.stride[1][k] != inner) {
        filled |= 1u << k;
      }
    }
  }

  static bool are(const Nest<kTensors>& nest, const Inner& run) {
    constexpr int64_t kShort = 96;
    bool simple = !kIsSmall && nest.levels == 2 && nest.inner() <= kShort && run.direct() &&
                  nest.stride[1][kOut] == nest.inner() && element_size(run.out_dtype) == 4;
    for (const Operand& operand : run.in) simple &= element_size(operand.dtype) == 4;
    return simple;
  }

  void fill(const Element* from, size_t k, int64_t rows, Element* to) const {
    for (int64_t row = 0; row < rows; ++row, from += nest.stride[1][k], to += inner) {
      for (int64_t i = 0; i < inner; ++i) to[i] = from[i * nest.stride[0][k]];
    }
  }

  void operator()(char* out, int64_t begin, int64_t end) const {
    alignas(64) Element blocks[kMaxOperands][kBlock];
    for (int64_t row = begin; row < end; row += most) {
      const int64_t rows = min(most, end - row);
      const void* pieces[kMaxOperands] = {};
      for (size_t k = 0; k < run.in.size(); ++k) {
        const auto* const from = static_cast<const Element*>(run.in[k].data);
        pieces[k] = from + row * nest.stride[1][k];
        if ((filled >> k & 1u) == 0) continue;
        fill(from + row * nest.stride[1][k], k, rows, blocks[k]);
        pieces[k] = blocks[k];
      }
      run.map.loop(run.map.user, pieces, scalars, out + row * inner * 4, rows * inner);
    }
  }
};

void run_nest(Context& context, Span<const Operand> in, const Tensor& out, const Map& map) {
  Nest<kTensors> nest;
  const ssize_t rank = out.dim();
  for (ssize_t i = rank; i-- > 0;) {
    const ssize_t d = out.dim_order()[static_cast<size_t>(i)];
    int64_t strides[kTensors] = {};
    for (size_t k = 0; k < in.size(); ++k) {
      if (in[k].impl != nullptr) strides[k] = broadcast_stride(Tensor(in[k].impl), d, rank);
    }
    strides[kOut] = out.stride(d);
    nest.push(out.size(d), strides);
  }
  const int64_t inner = nest.inner();
  const Inner run(in, map, out.scalar_type(), nest.stride[0]);
  const auto piece = [&](const int64_t* offsets, int64_t begin, int64_t end) {
    const void* data[kMaxOperands] = {};
    for (size_t k = 0; k < in.size(); ++k) {
      const int64_t first = offsets[k] + begin * nest.stride[0][k];
      data[k] = static_cast<const char*>(in[k].data) +
                first * static_cast<int64_t>(element_size(in[k].dtype));
    }
    const int64_t first = offsets[kOut] + begin;
    run.run(data, out.mutable_data_ptr<char>() + first * static_cast<int64_t>(out.element_size()),
            end - begin);
  };
  if (nest.levels <= 1) {
    const int64_t zero[kTensors] = {};
    context.parallel_for(0, inner, map.grain,
                         [&](int64_t begin, int64_t end) { piece(zero, begin, end); });
    return;
  }
  const int64_t grain = max<int64_t>(map.grain / inner, 1);
  if (ShortRows::are(nest, run)) {
    const ShortRows rows(nest, run);
    context.parallel_for(0, nest.outer(), grain, [&](int64_t begin, int64_t end) {
      rows(out.mutable_data_ptr<char>(), begin, end);
    });
    return;
  }
  context.parallel_for(0, nest.outer(), grain, [&](int64_t begin, int64_t end) {
    nest.for_each_outer(begin, end, [&](const int64_t* offsets) { piece(offsets, 0, inner); });
  });
}

}  // namespace

Error map(Context& context, Span<const Operand> in, const Tensor& out, const Map& map) {
  ETX_CHECK(context, map.loop != nullptr, NotSupported,
            "the operator does not support the dtypes of its inputs");
  uint32_t scalars = 0;
  if (is_flat(in, out, map, scalars)) {
    run_flat(context, in, out, map, scalars);
    return Error::Ok;
  }
  bool castable = is_castable(out.scalar_type());
  for (const Operand& operand : in) castable &= is_castable(operand.dtype);
  ETX_CHECK(context, castable, NotSupported, "the operator does not support these dtypes");
  ETX_TRY(broadcast(context, in, out));
  if (out.numel() != 0) run_nest(context, in, out, map);
  return Error::Ok;
}

}  // namespace etx::portable
