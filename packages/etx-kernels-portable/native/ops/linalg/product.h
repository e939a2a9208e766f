// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PRODUCT_H_
#define ETX_PORTABLE_PRODUCT_H_

/// Products of float64 and integers, and of weights in fewer bits than they are multiplied in.

#include <cstring>

#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/row_loops.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {

/// The types in which numbers are multiplied: integers modulo 2^bits, bytes in 16.
using Multiplied =
    DtypeList<DtypeTag<ScalarType::Float, float>, DtypeTag<ScalarType::Double, double>,
              DtypeTag<ScalarType::Short, uint16_t>, DtypeTag<ScalarType::Int, uint32_t>,
              DtypeTag<ScalarType::Long, uint64_t>>;

constexpr ScalarType multiplied_as(ScalarType type) {
  if (kIsSmall) return wide(type);
  const bool is_byte = type == ScalarType::Byte || type == ScalarType::Char;
  if (is_byte || type == ScalarType::Short) return ScalarType::Short;
  return type == ScalarType::Int ? type : wide(type);
}

constexpr bool is_multiplied(ScalarType type) {
  if (type == ScalarType::Int) return !kIsSmall && is_built(type);
  if (type != ScalarType::Short) return is_computed(type);
  return !kIsSmall && any_built(ScalarType::Byte, ScalarType::Char, ScalarType::Short);
}

constexpr bool kHalvesBuilt = any_built(ScalarType::Half, ScalarType::BFloat16);

/// Multiplies `panels` panels; `fill(i, memory)` returns the i-th product, whose panel it may put
/// into `memory`, `depth` * kPanel<T> elements.
template <typename T, typename Fill>
Error multiply_panels(Context& context, int64_t panels, int64_t depth, Checked work,
                      const Fill& fill) {
  const int64_t threads = min(useful_threads(context, work), max<int64_t>(panels, 1));
  ETX_ASSIGN(T* const memory, scratch<T>(context, threads * depth * kPanel<T>,
                                         "not enough temporary memory to multiply"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(panels, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        multiply_panel(fill(i, memory + job * depth * kPanel<T>));
      }
    }
  });
  return Error::Ok;
}

/// c = a b for `batch` row-major matrices that follow each other.
template <typename T>
Error multiply_matrices(Context& context, const T* a, const T* b, T* c, int64_t batch, int64_t m,
                        int64_t k, int64_t n) {
  constexpr int64_t width = kPanel<T>;
  const int64_t panels = divide_up(n, width);
  const auto fill = [&](int64_t i, T* memory) {
    const int64_t matrix = i / panels, first = i % panels * width;
    const T* const from = b + matrix * k * n + first;
    Product<T> p;
    p.a = a + matrix * m * k, p.a_stride = k;
    p.rows = m, p.depth = k, p.columns = min(width, n - first);
    p.c = c + matrix * m * n + first, p.row_step = n;
    p.panel = memory;
    if (m <= 4 && p.columns == width) {
      p.panel = from, p.panel_stride = n;
      return p;
    }
    for (int64_t l = 0; l < k; ++l) {
      T* const to = memory + l * width;
      if (p.columns == width) {
        std::memcpy(to, from + l * n, width * sizeof(T));
      } else {
        for (int64_t j = 0; j < width; ++j) to[j] = j < p.columns ? from[l * n + j] : T{0};
      }
    }
    return p;
  };
  return multiply_panels<T>(context, batch * panels, k, Checked(batch) * m * k * n, fill);
}

template <typename T>
using DotsLoop = void (*)(const Dots<T>&);
template <typename T>
using AccumulationLoop = void (*)(const Accumulation<T>&);

/// What a few rows of T are multiplied with as it lies.
template <typename T>
struct FewRows {
  DotsLoop<T> dots = nullptr;  ///< Null: it is converted first.
  AccumulationLoop<T> accumulate = nullptr;
};

template <typename T>
FewRows<T> few_rows(ScalarType type) {
  if constexpr (std::is_same_v<T, float>) {
    if constexpr (!kIsSmall) {
      if (type == ScalarType::Float) return {nullptr, isa().accumulate_float};
    }
    if constexpr (is_built(ScalarType::Half)) {
      if (type == ScalarType::Half) return {isa().dots_half, isa().accumulate_half};
    }
    if constexpr (is_built(ScalarType::BFloat16)) {
      if (type == ScalarType::BFloat16) return {isa().dots_bfloat16, isa().accumulate_bfloat16};
    }
  } else if constexpr (std::is_same_v<T, double>) {
    if (type == ScalarType::Double) return {isa().dots_double, isa().accumulate_double};
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (type == ScalarType::Long) return {isa().dots_long, nullptr};
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    if (type == ScalarType::Int) return {isa().dots_int, isa().accumulate_int};
  } else {
    // The result has as many bits, where the sign is of no account.
    if (type == ScalarType::Char || type == ScalarType::Byte) {
      return {isa().dots_byte, isa().accumulate_byte};
    }
  }
  return {};
}

/// c = a b for `batch` matrices, where a has few rows and b lies in another type.
template <typename T>
Error accumulate_matrices(Context& context, AccumulationLoop<T> loop, const T* a, const void* b,
                          int64_t size, T* c, int64_t batch, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t kColumns = 1024;
  const int64_t parts = divide_up(n, kColumns);
  const int64_t threads = useful_threads(context, Checked(batch) * m * k * n);
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / parts;
      const Part part(n, 64, i % parts, parts);
      Accumulation<T> d;
      d.a = a + matrix * m * k, d.a_stride = k, d.rows = m, d.depth = k;
      d.columns = part.end - part.begin;
      d.b = static_cast<const char*>(b) + (matrix * k * n + part.begin) * size, d.b_stride = n;
      d.y = c + matrix * m * n + part.begin, d.y_stride = n;
      loop(d);
    }
  };
  context.parallel_for(0, batch * parts, divide_up(batch * parts, threads), run);
  return Error::Ok;
}

/// y = x w^T + bias, where w, n x k, lies in `dtype` and is converted by a few rows at a time.
template <typename T>
Error multiply_weight(Context& context, const T* x, const void* w, ScalarType dtype, ScalarType as,
                      const T* bias, T* y, int64_t m, int64_t k, int64_t n);

extern template Error multiply_weight(Context&, const float*, const void*, ScalarType, ScalarType,
                                      const float*, float*, int64_t, int64_t, int64_t);
extern template Error multiply_weight(Context&, const double*, const void*, ScalarType, ScalarType,
                                      const double*, double*, int64_t, int64_t, int64_t);
extern template Error multiply_weight(Context&, const uint16_t*, const void*, ScalarType,
                                      ScalarType, const uint16_t*, uint16_t*, int64_t, int64_t,
                                      int64_t);
extern template Error multiply_weight(Context&, const uint32_t*, const void*, ScalarType,
                                      ScalarType, const uint32_t*, uint32_t*, int64_t, int64_t,
                                      int64_t);
extern template Error multiply_weight(Context&, const uint64_t*, const void*, ScalarType,
                                      ScalarType, const uint64_t*, uint64_t*, int64_t, int64_t,
                                      int64_t);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PRODUCT_H_
