// SPDX-License-Identifier: BSD-3-Clause
#include "core/map.h"

#include <cstring>

#include "core/broadcast.h"
#include "core/bytes_of.h"
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

/// Two levels, the inner one so short that a call for each of its rows takes longer than to write
/// operands that are one element a row, the same row, or of another dtype, into whole blocks.
struct ShortRows {
  const Nest<kTensors>& nest;
  const Inner& run;
  const int64_t inner, most;
  uint32_t filled = 0, scalars = 0;

  ShortRows(const Nest<kTensors>& levels, const Inner& loop)
      : nest(levels), run(loop), inner(levels.inner()), most(kBlock / inner) {
    for (size_t k = 0; k < run.in.size(); ++k) {
      const bool is_one = nest.stride[0][k] == 0 && nest.stride[1][k] == 0;
      if (is_one) scalars |= 1u << k;
      if (run.in[k].needs_conversion() || !(is_one || is_whole(k))) filled |= 1u << k;
    }
  }

  bool is_whole(size_t k) const { return nest.stride[0][k] == 1 && nest.stride[1][k] == inner; }

  static bool are(const Nest<kTensors>& nest, const Inner& run) {
    constexpr int64_t kShort = 96;
    if (kIsSmall || nest.levels != 2 || nest.stride[1][kOut] != nest.inner()) return false;
    int64_t longest = kShort;
    for (const Operand& in : run.in) longest = in.needs_conversion() ? kBlock : longest;
    return nest.inner() <= longest;
  }

  void fill(size_t k, const char* from, int64_t rows, char* to) const {
    const Operand& in = run.in[k];
    const int64_t along = nest.stride[0][k], down = nest.stride[1][k];
    const int64_t size = static_cast<int64_t>(element_size(in.dtype));
    const int64_t each = static_cast<int64_t>(element_size(in.as));
    const auto read = [&](int64_t row, int64_t stride, char* at, int64_t n) {
      cast_through(from + row * down * size, in.dtype, stride, in.through, at, in.as, n);
    };
    if (is_whole(k)) return read(0, 1, to, rows * inner);
    if ((scalars >> k & 1u) != 0) return read(0, 1, to, 1);
    if (along == 0) {
      alignas(64) char ones[kBlock * 8];
      read(0, down, ones, rows);
      return by_size(static_cast<size_t>(each), [&](auto bytes) {
        using T = typename WordOf<sizeof(bytes)>::Type;
        T* y = reinterpret_cast<T*>(to);
        for (int64_t row = 0; row < rows; ++row, y += inner) {
          const T one = reinterpret_cast<const T*>(ones)[row];
          for (int64_t i = 0; i < inner; ++i) y[i] = one;
        }
      });
    }
    int64_t done = down == 0 ? 1 : rows;
    for (int64_t row = 0; row < done; ++row) read(row, along, to + row * inner * each, inner);
    for (; done < rows; done *= 2) {
      const int64_t n = min(done, rows - done);
      std::memcpy(to + done * inner * each, to, static_cast<size_t>(n * inner * each));
    }
  }

  void operator()(char* out, int64_t begin, int64_t end) const {
    alignas(64) char blocks[kTensors][kBlock * 8];
    const int64_t size = static_cast<int64_t>(element_size(run.out_dtype));
    const bool is_direct = run.out_dtype == run.map.out_as;
    for (int64_t row = begin; row < end; row += most) {
      const int64_t rows = min(most, end - row);
      const void* pieces[kMaxOperands] = {};
      for (size_t k = 0; k < run.in.size(); ++k) {
        const Operand& in = run.in[k];
        const int64_t at = row * nest.stride[1][k] * static_cast<int64_t>(element_size(in.dtype));
        const char* const from = static_cast<const char*>(in.data) + at;
        const bool is_filled = (filled >> k & 1u) != 0;
        if (is_filled && (row == begin || nest.stride[1][k] != 0)) fill(k, from, rows, blocks[k]);
        pieces[k] = is_filled ? blocks[k] : from;
      }
      char* const y = out + row * inner * size;
      run.map.loop(run.map.user, pieces, scalars, is_direct ? y : blocks[kOut], rows * inner);
      if (!is_direct) cast(blocks[kOut], run.map.out_as, 1, y, run.out_dtype, rows * inner);
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
