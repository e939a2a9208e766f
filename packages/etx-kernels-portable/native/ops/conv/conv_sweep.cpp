// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_sweep.h"

#include <cstring>

#include "core/min_max.h"
#include "core/scratch.h"
#include "isa/pairs.h"
#include "ops/conv/packed_windows.h"
#include "ops/conv/padded_planes.h"
#include "selection.h"

namespace etx::portable {
namespace {

constexpr int kAxes = ConvShape::kAxes;

/// The outputs that one matrix product makes: all, or for a transposed convolution those whose
/// coordinates leave the remainder `phase` when divided by the stride.
struct Sweep {
  int64_t depth = 0, columns = 0, c_offset = 0;
  int64_t valid[kAxes], step[kAxes];
};

struct IndexTables {
  int32_t* a;  ///< Null where rows of the weight are read as they lie.
  int32_t* b;
};

/// Calls `f(tap, coordinates)` for each tap of the kernel.
template <class F>
void for_each_tap(const ConvShape& s, const F& f) {
  int64_t tap = 0;
  for (int64_t z = 0; z < s.kernel[0]; ++z) {
    for (int64_t y = 0; y < s.kernel[1]; ++y) {
      for (int64_t x = 0; x < s.kernel[2]; ++x) {
        const int64_t at[kAxes] = {z * s.dilation[0], y * s.dilation[1], x * s.dilation[2]};
        f(tap++, at);
      }
    }
  }
}

void add_steps(const ConvShape& s, Sweep& sweep) {
  int64_t stride = 1;
  for (int a = kAxes - 1; a >= 0; --a) {
    sweep.step[a] = stride * (s.transposed ? s.stride[a] : 1);
    stride *= s.out[a];
  }
}

/// Channels lie `channel_step` floats apart.
Sweep plan_forward(const ConvShape& s, const PaddedPlanes& planes, int64_t channel_step,
                   const IndexTables& tables, bool channels_last) {
  Sweep sweep;
  const int64_t step = channels_last ? s.in_channels : 1;
  const int64_t next = channels_last ? 1 : s.taps();
  for_each_tap(s, [&](int64_t tap, const int64_t (&at)[kAxes]) {
    int32_t offset = static_cast<int32_t>(planes.offset(at));
    for (int64_t c = 0; c < s.in_channels; ++c) {
      tables.b[tap * step + c * next] = offset;
      offset += static_cast<int32_t>(channel_step);
    }
  });
  sweep.depth = s.in_channels * s.taps();
  for (int a = 0; a < kAxes; ++a) sweep.valid[a] = s.out[a];
  add_steps(s, sweep);
  sweep.columns = planes.sweep(s.out);
  return sweep;
}

/// Outputs o with (o + padding) % stride = phase: o + padding = t stride + phase, and tap k, whose
/// reach k dilation = b stride + phase, takes input t - b.
Sweep plan_transposed(const ConvShape& s, const PaddedPlanes& planes, const int64_t (&phase)[kAxes],
                      const IndexTables& tables) {
  Sweep sweep;
  add_steps(s, sweep);
  int64_t first[kAxes], stride = 1;
  for (int a = kAxes - 1; a >= 0; --a) {
    const int64_t behind = s.padding[a] - phase[a], last = s.out[a] - 1 + behind;
    first[a] = behind > 0 ? divide_up(behind, s.stride[a]) : 0;
    sweep.valid[a] = last < 0 ? 0 : last / s.stride[a] - first[a] + 1;
    if (sweep.valid[a] <= 0) return sweep;
    sweep.c_offset += (first[a] * s.stride[a] - behind) * stride;
    stride *= s.out[a];
  }
  int64_t taps = 0;
  for_each_tap(s, [&](int64_t tap, const int64_t (&at)[kAxes]) {
    int64_t from[kAxes];
    for (int a = 0; a < kAxes; ++a) {
      if (at[a] % s.stride[a] != phase[a]) return;
      from[a] = first[a] + planes.padding[a] - at[a] / s.stride[a];
    }
    tables.a[taps] = static_cast<int32_t>(tap);
    tables.b[taps++] = static_cast<int32_t>(planes.offset(from));
  });
  sweep.depth = s.in_channels * taps;
  for (int64_t k = taps; k < sweep.depth; ++k) {
    tables.a[k] = tables.a[k - taps] + static_cast<int32_t>(s.out_channels * s.taps());
    tables.b[k] = tables.b[k - taps] + static_cast<int32_t>(planes.channel());
  }
  sweep.columns = planes.sweep(sweep.valid);
  return sweep;
}

/// How many phases occur among the outputs of an axis: those of the first ones.
int64_t used_phases(const ConvShape& s, int axis) { return min(s.out[axis], s.stride[axis]); }

/// What the products of one call share.
struct Workspace {
  const ConvShape& shape;  ///< With half of the channels where they are of pairs.
  int64_t in_channels;     ///< Of a group, as they lie in the input.
  const Rows& weight;
  PaddedPlanes planes;
  int64_t threads;
  float* padded = nullptr;
  float* gathered = nullptr;
  float* paired = nullptr;  ///< The planes of two channels for each thread.
  float* packed = nullptr;
  IndexTables tables{nullptr, nullptr};
  PackedWindows windows;
  const bool is_packed;
  /// The phases of a line are made apart, then put together, by permuting vectors of eight.
  const bool is_joined;
  float* apart = nullptr;

  Workspace(Context& context, const ConvShape& s, int64_t channels_of_input, const Rows& rows)
      : shape(s),
        in_channels(channels_of_input),
        weight(rows),
        planes(planes_of(s)),
        threads(useful_threads(context,
                               Checked(s.out_channels) * s.in_channels * s.taps() * s.out_size())),
        windows(s, planes, rows, threads),
        is_packed(!kIsSmall && windows.pays()),
        is_joined(should_join()) {}

  static PaddedPlanes planes_of(const ConvShape& s) {
    PaddedPlanes planes(s);
    planes.share_padding(s);
    return planes;
  }

  /// True for strided lines, and for short ones with something between them.
  bool should_join() const {
    const int64_t lanes = isa().vector_floats;
    if (kIsSmall || is_packed) return false;
    if (lanes != 8) return has_joined_phases(lanes == 16 ? 3 : 2);
    if (shape.transposed && shape.stride[2] > 1) return true;
    return shape.out[2] < 2 * isa().tile_columns && shape.out[2] < planes.length[2];
  }

  /// True where there are up to `most` phases, as `join_line` permutes, and a product of few terms
  /// takes less time than elements that are stored one by one.
  bool has_joined_phases(int64_t most) const {
    constexpr int64_t kLine = 8, kTerms = 8;
    const int64_t* const stride = shape.stride;
    const Checked made = Checked(stride[0]) * stride[1] * stride[2] * kTerms * shape.out_channels;
    return shape.transposed && stride[2] > 1 && stride[2] <= most && shape.out[2] >= kLine &&
           depth() < made.value_or(INT64_MAX);
  }

  int64_t depth() const { return shape.in_channels * shape.taps(); }
  /// Lines of a tile that lie at multiples of 512 bytes drive each other out of the cache.
  int64_t channel_step() const {
    const bool collides = weight.in_tiles() && planes.channel() % 128 == 0;
    return planes.channel() + (collides ? 16 : 0);
  }
  int64_t phases() const { return shape.transposed ? used_phases(shape, 2) : 1; }
  /// Floats of a phase that is made apart, whole panels.
  int64_t apart_floats() const {
    return divide_up(planes.plane(), isa().tile_columns) * isa().tile_columns;
  }

  Error allocate(Context& context) {
    const Checked padded_floats = Checked(shape.in_channels) * channel_step();
    const Checked weights = Checked(shape.out_channels) * depth();
    ETX_CHECK(context, padded_floats.is_within(0, INT32_MAX) && weights.is_within(0, INT32_MAX),
              NotSupported, "the padded input of one image must have less than 2^31 elements");
    const int64_t floats = padded_floats.value_or(0);
    const int64_t index = 2 * depth() + 16, rows = gemm_scratch(depth(), threads);
    const int64_t pairs = weight.of_pairs ? threads * 2 * planes.channel() : 0;
    ETX_ASSIGN(padded, scratch<float>(context, floats + PaddedPlanes::kSlack + index + rows + pairs,
                                      "not enough temporary memory for the padded input"));
    float* const slack = padded + floats;
    memset(slack, 0, PaddedPlanes::kSlack * sizeof(float));
    const auto between = static_cast<size_t>(channel_step() - planes.channel());
    for (int64_t c = 0; between != 0 && c < shape.in_channels; ++c) {
      memset(padded + c * channel_step() + planes.channel(), 0, between * sizeof(float));
    }
    tables.b = reinterpret_cast<int32_t*>(slack + PaddedPlanes::kSlack);
    tables.a = shape.transposed ? tables.b + depth() : nullptr;
    gathered = slack + PaddedPlanes::kSlack + index;
    paired = gathered + rows;
    if (is_packed) {
      ETX_ASSIGN(packed, scratch<float>(context, windows.floats(),
                                        "not enough temporary memory for panels of windows"));
    }
    if (is_joined) {
      const Checked all =
          Checked(shape.out_channels) * phases() * apart_floats() + PaddedPlanes::kSlack;
      ETX_ASSIGN(apart, scratch<float>(context, all.value_or(-1),
                                       "not enough temporary memory for phases of lines"));
    }
    return Error::Ok;
  }

  /// Pads the channels of one group.
  void pad(Context& context, const float* image) const {
    const int64_t size = shape.in_size();
    context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const Part part(shape.in_channels, 1, job, threads);
        if constexpr (!kIsSmall && is_built(ScalarType::BFloat16)) {
          for (int64_t c = part.begin; weight.of_pairs && c < part.end; ++c) {
            pad_pair(image, c, paired + job * 2 * planes.channel());
          }
          if (weight.of_pairs) continue;
        }
        planes.copy_channels(image + part.begin * size, part.end - part.begin,
                             padded + part.begin * planes.channel());
      }
    });
  }

  /// Makes planes of pair `p`, with zeros in the place of a last channel that is not there.
  void pad_pair(const float* image, int64_t p, float* memory) const {
    const int64_t length = planes.channel();
    const float* const from = image + 2 * p * shape.in_size();
    float* const next = memory + length;
    planes.copy_channels(from, 1, memory);
    if (2 * p + 1 < in_channels) {
      planes.copy_channels(from + shape.in_size(), 1, next);
    } else {
      memset(next, 0, static_cast<size_t>(length) * sizeof(float));
    }
    pairs()->interleave(memory, next, padded + p * channel_step(), length);
  }

  /// Puts the lines that were made apart to where `sweep`, of their first phase, says.
  void join(Context& context, const Sweep& sweep, float* out) const {
    const int64_t depth = sweep.valid[0];
    context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const Part part(shape.out_channels * depth, 1, job, threads);
        for (int64_t i = part.begin; i < part.end; ++i) {
          const int64_t channel = i / depth, z = i % depth;
          join_phases(
              apart + channel * phases() * apart_floats() + z * planes.length[1] * planes.length[2],
              apart_floats(), phases(), planes.length[2], sweep.valid[1], shape.out[2],
              out + channel * shape.out_size() + sweep.c_offset + z * sweep.step[0], sweep.step[1]);
        }
      }
    });
  }

  /// True where a sweep runs over outputs only, which lie as it goes.
  bool is_gapless(const Sweep& sweep) const {
    const int64_t *const size = sweep.valid, *const step = sweep.step;
    const bool lines = size[1] == planes.length[1] && step[0] == size[1] * step[1];
    return size[2] == planes.length[2] && step[2] == 1 && step[1] == size[2] &&
           (lines || size[0] == 1);
  }

  /// Runs `sweep` for one group of an image, whose padded planes are ready. `out` is that group's,
  /// or where phase `apart_phase` of its lines is made apart.
  void run(Context& context, const Sweep& sweep, int64_t group, const float* bias, float* out,
           int64_t apart_phase) const {
    if (sweep.columns <= 0) return;
    const int64_t row = group * shape.out_channels;
    Gemm g;
    weight.set(g, group * shape.out_channels * depth());
    g.a_stride = shape.transposed ? shape.taps() : depth();
    g.a_index = tables.a;
    g.b = padded;
    g.b_index = tables.b;
    g.panel_stride = isa().tile_columns;
    g.bias = bias == nullptr ? nullptr : bias + row;
    g.c = out + sweep.c_offset;
    g.c_stride = shape.out_size();
    g.depth = sweep.depth;
    g.row_end = shape.out_channels;
    g.column_end = sweep.columns;
    if (is_joined) {
      g.c = apart + apart_phase * apart_floats();
      g.c_stride = phases() * apart_floats();
      g.column_end = divide_up(sweep.columns, isa().tile_columns) * isa().tile_columns;
    }
    g.column_block = column_block(4 * shape.in_channels * planes.phases[1] * planes.phases[2]);
    const bool gather =
        shape.transposed || weight.halves != nullptr || should_gather(sweep.depth, sweep.columns);
    g.scratch = gather ? gathered : nullptr;
    if (is_packed) {
      windows.run(context, g, g.b, tables.b, packed);
      return;
    }
    if (kIsSmall || !(is_joined || is_gapless(sweep))) {
      g.store = Gemm::Store::Grid;
      g.box[0] = planes.length[1], g.box[1] = planes.length[2];
      for (int a = 0; a < kAxes; ++a) g.valid[a] = sweep.valid[a], g.step[a] = sweep.step[a];
    }
    run_gemm(context, g, threads);
  }
};

Error convolve_sweeping(Context& context, const ConvShape& shape, int64_t in_channels,
                        const float* input, const Rows& weight, const float* bias, float* out) {
  Workspace work(context, shape, in_channels, weight);
  ETX_TRY(work.allocate(context));
  const int64_t in_group = in_channels * shape.in_size();
  const int64_t phases[kAxes] = {used_phases(shape, 0), used_phases(shape, 1),
                                 used_phases(shape, 2)};
  Sweep sweep, lines;
  if (!shape.transposed) {
    sweep = plan_forward(shape, work.planes, work.channel_step(), work.tables, weight.is_narrow());
  }
  for (int64_t p = 0; p < shape.batch * shape.groups; ++p) {
    const int64_t group = p % shape.groups;
    float* const to = out + p * shape.out_channels * shape.out_size();
    work.pad(context, input + p * in_group);
    if (!shape.transposed) {
      work.run(context, sweep, group, bias, to, 0);
      if (work.is_joined) work.join(context, sweep, to);
      continue;
    }
    for (int64_t i = 0; i < phases[0] * phases[1] * phases[2]; ++i) {
      const int64_t first[kAxes] = {i / phases[2] / phases[1], i / phases[2] % phases[1],
                                    i % phases[2]};
      int64_t phase[kAxes];
      for (int a = 0; a < kAxes; ++a) {
        phase[a] = (first[a] + shape.padding[a]) % shape.stride[a];
      }
      sweep = plan_transposed(shape, work.planes, phase, work.tables);
      if (first[2] == 0) lines = sweep;
      work.run(context, sweep, group, bias, to, first[2]);
      if (work.is_joined && first[2] == phases[2] - 1) work.join(context, lines, to);
    }
  }
  return Error::Ok;
}

}  // namespace

Error sweep_convolution(Context& context, const ConvShape& shape, const float* input,
                        const float* weight, const float* bias, float* out) {
  return convolve_sweeping(context, shape, shape.in_channels, input, weight, bias, out);
}

Error sweep_narrow(Context& context, const ConvShape& shape, const float* input, const Rows& weight,
                   const float* bias, float* out) {
  ConvShape halved = shape;
  if (weight.of_pairs) halved.in_channels = divide_up(shape.in_channels, 2);
  return convolve_sweeping(context, halved, shape.in_channels, input, weight, bias, out);
}

}  // namespace etx::portable
