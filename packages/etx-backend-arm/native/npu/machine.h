// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_MACHINE_H_
#define ETX_NPU_MACHINE_H_

#include "npu/commands.h"
#include "npu/feature_map.h"
#include "npu/in_flight.h"
#include "npu/memory.h"

namespace etx::npu {

/// What a command stream needs beside its regions.
struct Needs {
  size_t weights = 0;   ///< int16, of the largest operator
  size_t patch = 0;     ///< int32: the inputs of one output pixel
  size_t depth = 0;     ///< int32: the channels of one output pixel
  uint64_t work = 0;    ///< multiplications of all operators
  bool tables = false;  ///< memory for tables: `Memory::kTables`
};

/// Memory of the sizes that `Machine::measure` has returned.
struct Workspace {
  int16_t* weights = nullptr;
  int32_t* patch = nullptr;
  int32_t* pixel = nullptr;
};

/// Tells whether to stop; null: never.
struct Cancel {
  bool (*is_cancelled)(const void* user) = nullptr;
  const void* user = nullptr;
};

/// What `Machine::run` returns when it was told to stop.
extern const char kCancelled[];

/// An Ethos-U55 or U65 that executes a register command stream, without time.
///
/// It computes what the hardware computes and refuses what the hardware would not notice: reads of
/// bytes that were never written, regions overrun, transfers that are used before they are waited
/// for, or that meet operators that are not. Not done: tables of 16 bits, strided transfers.
class Machine {
 public:
  /// `header` and `stream` are what `read_stream` has found.
  Machine(const uint8_t* stream, size_t words, uint32_t macs)
      : stream_(stream), words_(words), macs_(macs) {}

  /// Checks all commands, and adds up what they need.
  Fault measure(Needs* needs);
  Fault run(Memory* memory, const Workspace& workspace, Cancel cancel = {});

  /// Offset in bytes of the command at which the last call has ended.
  size_t offset() const { return at_ * 4; }

 private:
  struct Window {
    uint32_t height, width, stride_y, stride_x, dilation_y, dilation_x;
    uint32_t top, left, bottom, right;
    bool part_kernel_first;
    bool small_parts;
  };
  /// One of `count` cores, which takes every `count`-th output channel.
  struct Core {
    uint32_t index, count;
    uint32_t channels(uint32_t depth) const { return (depth + count - 1 - index) / count; }
  };
  struct Pixel {
    uint32_t y, x;
  };

  Fault walk();
  Fault step(uint16_t command, uint16_t parameter);
  Fault start_transfer();
  void end_transfers(uint32_t left);
  Fault operate(uint16_t command, uint16_t parameter);
  Fault execute(const FeatureMap& from, const FeatureMap& to, uint16_t command, uint16_t parameter);
  Fault launch(const FeatureMap& from, const FeatureMap& to, uint16_t command, uint16_t parameter);
  Fault add_second(const FeatureMap& from, uint32_t kind, Use* use) const;
  uint32_t cores() const;
  Fault check(const FeatureMap& to, uint64_t window, uint64_t volume);
  Fault read_weights(const FeatureMap& from, const FeatureMap& to, bool is_depthwise, Core core);
  Fault gather(const FeatureMap& from, Pixel pixel, uint64_t* count);
  Fault convolve(const FeatureMap& from, const FeatureMap& to, bool is_depthwise);
  Fault pool(const FeatureMap& from, const FeatureMap& to, bool is_average);
  Fault reduce(const FeatureMap& from, const FeatureMap& to);
  Fault combine(const FeatureMap& from, const FeatureMap& to, uint32_t kind);
  Fault combine(uint32_t kind, int64_t a, int64_t b, uint32_t bytes, int64_t* result) const;
  Fault requantize(const FeatureMap& to, int64_t sum, uint64_t scale, uint32_t shift,
                   int32_t* result) const;
  Fault look_up(const FeatureMap& to, int32_t* result) const;
  Window window() const;
  Fault set_window();
  Fault may_go_on() const;

  const uint8_t* stream_;
  size_t words_;
  uint32_t macs_;
  size_t at_ = 0;
  Registers registers_;
  Window window_ = {};
  uint32_t input_height_ = 0;
  uint32_t input_width_ = 0;
  InFlight in_flight_;
  Memory* memory_ = nullptr;
  Workspace workspace_;
  Cancel cancel_;
  Needs* needs_ = nullptr;
  bool is_over_ = false;
};

}  // namespace etx::npu

#endif  // ETX_NPU_MACHINE_H_
