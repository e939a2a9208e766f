// SPDX-License-Identifier: BSD-3-Clause
#include "npu/machine.h"
#include "npu/scaling.h"
#include "npu/weights.h"

namespace etx::npu {
namespace {

constexpr uint32_t kInputMicroBlock = 8;
constexpr size_t kRecord = 10;
constexpr uint64_t kMostAveraged = 64;

uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
uint32_t round_up(uint32_t value, uint32_t step) { return (value + step - 1) / step * step; }

/// What is stored for an output channel: a bias of 40 bits, a scale of 32, a shift of 6.
struct Record {
  int64_t bias;
  uint32_t scale;
  uint32_t shift;

  explicit Record(const uint8_t* data) : scale(0), shift(data[9] & 63u) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 5; ++i) bits |= static_cast<uint64_t>(data[i]) << 8 * i;
    bias = static_cast<int64_t>(bits << 24) >> 24;
    for (uint32_t i = 0; i < 4; ++i) scale |= static_cast<uint32_t>(data[5 + i]) << 8 * i;
  }
};

/// `sum / count`, as TOSA's AVG_POOL2D has it; a padded pool divides by what is in the window.
Fault divided(int64_t sum, uint64_t count, int64_t* result) {
  if (count == 0 || count > kMostAveraged) return "a padded average of none or many elements";
  uint32_t bits = 0;
  while (uint64_t{1} << bits < count) ++bits;
  return scaled(sum, (((uint64_t{1} << 30) + 1) << bits) / count, 30 + bits, kNatural, result);
}

}  // namespace

Fault Machine::read_weights(const FeatureMap& from, const FeatureMap& to, bool is_depthwise,
                            Core core) {
  const uint8_t* data = nullptr;
  const uint32_t channels = core.channels(to.depth);
  if (channels == 0) return nullptr;
  const uint64_t length = registers_[core.index == 0 ? kWeightLength : kWeight1Length];
  if (length > SIZE_MAX) return "a weight stream that is longer than its region";
  const uint64_t base = registers_[core.index == 0 ? kWeightBase : kWeight1Base];
  NPU_TRY(memory_->read(registers_[kWeightRegion], base, static_cast<size_t>(length), &data));
  WeightStream stream(data, static_cast<size_t>(length));
  const bool by_part = window_.part_kernel_first && !is_depthwise;
  const uint32_t inputs = is_depthwise ? 1 : from.depth;
  const uint32_t input_block = by_part || from.bytes == 2 ? 16 : 32;
  const uint32_t output_block = core.channels(registers_.size(kOfmBlockDepth));
  if (output_block == 0) return "a block without channels of the second core";
  const uint32_t output_step = macs_ == 32 ? 4 : 8;
  const uint32_t part_height = (window_.small_parts ? 4 : 8) / window_.dilation_y;
  const uint32_t part_width = (window_.small_parts ? 4 : 8) / window_.dilation_x;
  const uint32_t kernel = window_.height * window_.width;
  for (uint32_t oc0 = 0; oc0 < channels; oc0 += output_block) {
    const uint32_t outputs = least(output_block, channels - oc0);
    for (uint32_t ic0 = 0; ic0 < inputs; ic0 += input_block) {
      uint32_t depth = is_depthwise ? kInputMicroBlock : input_block;
      if (by_part) depth = least(depth, inputs - ic0);
      for (uint32_t y0 = 0; y0 < window_.height; y0 += part_height) {
        const uint32_t rows = least(part_height, window_.height - y0);
        for (uint32_t x0 = 0; x0 < window_.width; x0 += part_width) {
          const uint32_t columns = least(part_width, window_.width - x0);
          uint32_t elements = rows * columns;
          if (is_depthwise) elements = round_up(elements, 4);
          if (by_part) elements = round_up(elements, from.bytes == 2 ? 2 : 4);
          const uint32_t outer = by_part ? depth : 1, inner = by_part ? 1 : depth;
          for (uint32_t i0 = 0; i0 < outer; i0 += kInputMicroBlock) {
            for (uint32_t o0 = 0; o0 < outputs; o0 += output_step) {
              for (uint32_t element = 0; element < elements; ++element) {
                const uint32_t ky = element / columns, kx = element % columns;
                for (uint32_t i1 = 0; i1 < inner; i1 += kInputMicroBlock) {
                  for (uint32_t o = o0; o < o0 + output_step; ++o) {
                    for (uint32_t i = 0; i < (is_depthwise ? 1 : kInputMicroBlock); ++i) {
                      int16_t weight = 0;
                      NPU_TRY(stream.next(&weight));
                      const uint32_t ic = ic0 + i0 + i1 + i, oc = oc0 + o;
                      if (ky >= rows || ic >= inputs || oc >= channels) continue;
                      const uint32_t at = (y0 + ky) * window_.width + x0 + kx;
                      const size_t row = size_t{oc} * core.count + core.index;
                      workspace_.weights[(row * kernel + at) * inputs + ic] = weight;
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  return nullptr;
}

Fault Machine::gather(const FeatureMap& from, Pixel pixel, uint64_t* count) {
  int32_t* patch = workspace_.patch;
  const uint32_t upscale = registers_[kIfmUpscale];
  *count = 0;
  for (uint32_t ky = 0; ky < window_.height; ++ky) {
    const int64_t y = int64_t{pixel.y} * window_.stride_y + ky * window_.dilation_y - window_.top;
    for (uint32_t kx = 0; kx < window_.width; ++kx, patch += from.depth) {
      const int64_t x =
          int64_t{pixel.x} * window_.stride_x + kx * window_.dilation_x - window_.left;
      if (y < 0 || x < 0 || y >= input_height_ || x >= input_width_) {
        for (uint32_t c = 0; c < from.depth; ++c) patch[c] = 0;
        continue;
      }
      ++*count;
      const auto row = static_cast<uint32_t>(y), column = static_cast<uint32_t>(x);
      if (upscale == kZeros && ((row | column) & 1) != 0) {
        for (uint32_t c = 0; c < from.depth; ++c) patch[c] = 0;
        continue;
      }
      const uint32_t shift = upscale == 0 ? 0 : 1;
      NPU_TRY(from.read(*memory_, row >> shift, column >> shift, patch));
    }
  }
  return nullptr;
}

Fault Machine::convolve(const FeatureMap& from, const FeatureMap& to, bool is_depthwise) {
  const uint32_t cores = this->cores();
  const uint8_t* records[2] = {};
  for (uint32_t i = 0; i < cores; ++i) {
    const Core core = {i, cores};
    NPU_TRY(read_weights(from, to, is_depthwise, core));
    const uint64_t base = registers_[i == 0 ? kScaleBase : kScale1Base];
    NPU_TRY(memory_->read(registers_[kScaleRegion], base, kRecord * core.channels(to.depth),
                          &records[i]));
  }
  const uint32_t kernel = window_.height * window_.width;
  const size_t length = size_t{kernel} * (is_depthwise ? 1 : from.depth);
  for (uint32_t y = 0; y < registers_.size(kOfmHeight); ++y) {
    for (uint32_t x = 0; x < registers_.size(kOfmWidth); ++x) {
      NPU_TRY(may_go_on());
      uint64_t count = 0;
      NPU_TRY(gather(from, {y, x}, &count));
      for (uint32_t oc = 0; oc < to.depth; ++oc) {
        const Record record(records[oc % cores] + kRecord * (oc / cores));
        const int16_t* weights = workspace_.weights + length * oc;
        const int32_t* patch = workspace_.patch + (is_depthwise ? oc : 0);
        const size_t step = is_depthwise ? from.depth : 1;
        int64_t sum = record.bias;
        for (size_t i = 0; i < length; ++i) sum += int64_t{weights[i]} * patch[i * step];
        if (sum > INT32_MAX || sum < INT32_MIN) return "a sum of more than 32 bits";
        NPU_TRY(requantize(to, sum, record.scale, record.shift, workspace_.pixel + oc));
      }
      NPU_TRY(to.write(memory_, y, x, workspace_.pixel));
    }
  }
  return nullptr;
}

Fault Machine::pool(const FeatureMap& from, const FeatureMap& to, bool is_average) {
  const uint64_t given = registers_[kOfmScale];
  const auto scale = given & 0xffffffffu;
  const auto shift = static_cast<uint32_t>(given >> 32 & 63);
  const uint32_t kernel = window_.height * window_.width;
  const bool is_padded =
      is_average && (window_.top | window_.left | window_.bottom | window_.right) != 0;
  for (uint32_t y = 0; y < registers_.size(kOfmHeight); ++y) {
    for (uint32_t x = 0; x < registers_.size(kOfmWidth); ++x) {
      NPU_TRY(may_go_on());
      uint64_t count = 0;
      NPU_TRY(gather(from, {y, x}, &count));
      for (uint32_t c = 0; c < to.depth; ++c) {
        int64_t sum = is_average ? 0 : INT32_MIN;
        for (uint32_t i = 0; i < kernel; ++i) {
          const int64_t value = workspace_.patch[size_t{i} * from.depth + c];
          const uint32_t ky = i / window_.width, kx = i % window_.width;
          const int64_t py = int64_t{y} * window_.stride_y + ky * window_.dilation_y - window_.top;
          const int64_t px = int64_t{x} * window_.stride_x + kx * window_.dilation_x - window_.left;
          const bool inside = py >= 0 && px >= 0 && py < input_height_ && px < input_width_;
          if (is_average) sum += value;
          if (!is_average && inside && value > sum) sum = value;
        }
        if (is_padded) NPU_TRY(divided(sum, count, &sum));
        NPU_TRY(requantize(to, sum, scale, shift, workspace_.pixel + c));
      }
      NPU_TRY(to.write(memory_, y, x, workspace_.pixel));
    }
  }
  return nullptr;
}

}  // namespace etx::npu
