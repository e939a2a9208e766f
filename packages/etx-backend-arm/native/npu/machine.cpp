// SPDX-License-Identifier: BSD-3-Clause
#include "npu/machine.h"

#include <cstring>

namespace etx::npu {
namespace {

constexpr uint16_t kLongCommand = 0x4000;
constexpr uint16_t kForms = 0xc000;
constexpr uint16_t kNumbers = 0x3ff;
constexpr uint64_t kMostElements = uint64_t{1} << 28;

uint32_t word_at(const uint8_t* stream, size_t index) {
  const uint8_t* bytes = stream + index * 4;
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

/// Bytes of memory inside of an NPU; the tables lie at its end.
uint64_t own_memory(uint32_t macs) {
  constexpr uint64_t kKilo = 1024;
  return (macs <= 64 ? 16 : macs == 128 ? 24 : 48) * kKilo;
}

}  // namespace

const char kCancelled[] = "it was told to stop";

Fault Machine::may_go_on() const {
  if (cancel_.is_cancelled == nullptr || !cancel_.is_cancelled(cancel_.user)) return nullptr;
  return kCancelled;
}

Fault Machine::measure(Needs* needs) {
  needs_ = needs;
  memory_ = nullptr;
  return walk();
}

Fault Machine::run(Memory* memory, const Workspace& workspace, Cancel cancel) {
  needs_ = nullptr;
  memory_ = memory;
  workspace_ = workspace;
  cancel_ = cancel;
  return walk();
}

Fault Machine::walk() {
  registers_.clear();
  in_flight_.clear();
  is_over_ = false;
  size_t next = 0;
  while (!is_over_) {
    at_ = next;
    if (next >= words_) return "a command stream ends without NPU_OP_STOP";
    const uint32_t word = word_at(stream_, next++);
    const auto form = static_cast<uint16_t>(word & kForms);
    const auto number = static_cast<uint16_t>(word & kNumbers);
    const auto parameter = static_cast<uint16_t>(word >> 16);
    if (form == kLongCommand) {
      if (next >= words_) return "a command stream ends without NPU_OP_STOP";
      if (number > 255) return "an unknown command";
      registers_.wide[number] = static_cast<uint64_t>(parameter) << 32 | word_at(stream_, next++);
    } else if (form != 0 || number >= 0x200) {
      return "an unknown command";
    } else if (number >= 0x100) {
      registers_.narrow[number & 255] = parameter;
    } else {
      NPU_TRY(step(number, parameter));
    }
  }
  return nullptr;
}

Fault Machine::step(uint16_t command, uint16_t parameter) {
  switch (command) {
    case kStop: is_over_ = true; return nullptr;
    case kDmaStart: return start_transfer();
    case kDmaWait: end_transfers(parameter); return nullptr;
    case kKernelWait: in_flight_.end_operators(parameter); return nullptr;
    case kConv:
    case kDepthwise:
    case kPool:
    case kElementwise: return operate(command, parameter);
    default: return "an unknown command";
  }
}

Fault Machine::start_transfer() {
  constexpr uint32_t kInside = 0x100, kStrides = 0x600;
  const uint32_t from = registers_[kDmaSourceRegion];
  uint32_t to = registers_[kDmaTargetRegion];
  if (((from | to) & kStrides) != 0 || (from & kInside) != 0) {
    return "a transfer out of the NPU or with strides, which the simulator does not have yet";
  }
  const uint64_t length = registers_[kDmaLength];
  if (length > kMostElements) return "a transfer of more than 256 MB";
  const auto count = static_cast<size_t>(length);
  uint64_t address = registers_[kDmaTarget];
  if ((to & kInside) != 0) {
    const uint64_t begin = own_memory(macs_) - Memory::kTableBytes;
    if (address < begin) return "a transfer into the NPU in front of its tables";
    address -= begin;
    to = Memory::kTables;
    if (needs_ != nullptr) needs_->tables = true;
  }
  const Extent read = {Memory::place(from), registers_[kDmaSource], registers_[kDmaSource] + count};
  const Extent written = {Memory::place(to), address, address + count};
  NPU_TRY(in_flight_.start(read, written));
  if (needs_ != nullptr) return nullptr;
  const uint8_t* source = nullptr;
  uint8_t* target = nullptr;
  NPU_TRY(memory_->read(from, registers_[kDmaSource], count, &source));
  NPU_TRY(memory_->write(to, address, count, &target));
  std::memmove(target, source, count);
  memory_->region(to).mark(address, count, false);
  return nullptr;
}

void Machine::end_transfers(uint32_t left) {
  for (Extent each; in_flight_.end_transfer(left, &each);) {
    if (memory_ == nullptr) continue;
    memory_->region(each.region).mark(each.begin, static_cast<size_t>(each.end - each.begin), true);
  }
}

Machine::Window Machine::window() const {
  const uint32_t bits = registers_[kKernelStride];
  Window made = {};
  made.stride_x = (bits & 1) + (bits >> 6 & 1) * 2 + 1;
  made.stride_y = (bits >> 1 & 1) + (bits >> 9 & 1) * 2 + 1;
  made.dilation_x = (bits >> 3 & 1) + 1;
  made.dilation_y = (bits >> 4 & 1) + 1;
  // The registers hold how far a kernel reaches, its gaps included.
  made.height = registers_[kKernelHeight] / made.dilation_y + 1;
  made.width = registers_[kKernelWidth] / made.dilation_x + 1;
  made.part_kernel_first = (bits >> 2 & 1) != 0;
  made.small_parts = (bits >> 5 & 1) != 0;
  made.top = registers_[kIfmPadTop];
  made.left = registers_[kIfmPadLeft];
  made.bottom = registers_[kIfmPadBottom];
  made.right = registers_[kIfmPadRight];
  return made;
}

Fault Machine::operate(uint16_t command, uint16_t parameter) {
  constexpr uint32_t kTable = 16, kMostTables = 8;
  if (registers_[kIfmUpscale] > kZeros) return "an unknown way to upscale an input";
  const uint32_t activation = registers_[kActivation] & 31;
  if (activation != 0 && (activation < kTable || activation >= kTable + kMostTables)) {
    return "an activation that is not a table, which the simulator does not have yet";
  }
  FeatureMap from = {}, to = {};
  NPU_TRY(FeatureMap::input(registers_, &from));
  NPU_TRY(FeatureMap::output(registers_, &to));
  if (activation != 0 && to.bytes != 1) {
    return "a table of other than 8 bits, which the simulator does not have yet";
  }
  if (command == kElementwise) {
    if (registers_[kIfmUpscale] != 0) return "an upscaled input of an operator by element";
    if (from.depth != to.depth) return "an operator by element that changes their number";
    NPU_TRY(check(to, uint64_t{2} * from.depth, 0));
    return execute(from, to, command, parameter);
  }
  NPU_TRY(set_window());
  const bool sums = command == kConv, reduces = command == kPool && parameter == 2;
  if (command == kPool && parameter > 2) return "an unknown pool";
  if (from.bytes > 2 && !reduces) {
    return "a window over 32 bits, which the simulator does not have yet";
  }
  if (reduces && (window_.height != 1 || window_.width != 1 || to.depth != 1)) {
    return "a reduction of other than channels";
  }
  if (!sums && !reduces && from.depth != to.depth) {
    return "an operator by channel that changes their number";
  }
  const uint64_t elements = static_cast<uint64_t>(window_.height) * window_.width;
  const uint64_t volume = command == kPool ? 0 : elements * (sums ? from.depth : 1) * to.depth;
  NPU_TRY(check(to, elements * from.depth, volume));
  return execute(from, to, command, parameter);
}

Fault Machine::execute(const FeatureMap& from, const FeatureMap& to, uint16_t command,
                       uint16_t parameter) {
  NPU_TRY(launch(from, to, command, parameter));
  if (needs_ != nullptr) return nullptr;
  if (command == kElementwise) return combine(from, to, parameter);
  if (command == kPool && parameter == 2) return reduce(from, to);
  if (command == kPool) return pool(from, to, parameter == 1);
  return convolve(from, to, command == kDepthwise);
}

uint32_t Machine::cores() const {
  constexpr uint32_t kMacsOfCore = 256;
  return macs_ > kMacsOfCore && registers_[kParallelMode] == 1 ? 2 : 1;
}

Fault Machine::launch(const FeatureMap& from, const FeatureMap& to, uint16_t command,
                      uint16_t parameter) {
  constexpr uint64_t kTableLength = 256;
  const uint32_t rows = registers_.size(kOfmHeight), columns = registers_.size(kOfmWidth);
  Use use;
  use.written = to.extent(rows, columns);
  if (command == kElementwise) {
    use.read(from.extent(rows, columns));
    NPU_TRY(add_second(from, parameter, &use));
  } else {
    const uint32_t half = registers_[kIfmUpscale] == 0 ? 0 : 1;
    use.read(from.extent((input_height_ + half) >> half, (input_width_ + half) >> half));
  }
  if (command == kConv || command == kDepthwise) {
    const auto add = [&](Short region, Long base) {
      const uint64_t begin = registers_[base];
      const uint64_t length = registers_[static_cast<Long>(base + 1)];
      use.read({Memory::place(registers_[region]), begin, begin + length});
    };
    add(kWeightRegion, kWeightBase);
    add(kScaleRegion, kScaleBase);
    if (cores() == 2) {
      add(kWeightRegion, kWeight1Base);
      add(kScaleRegion, kScale1Base);
    }
  }
  if ((registers_[kActivation] & 31) != 0) {
    const uint64_t begin = uint64_t{registers_[kActivation] & 7} * kTableLength;
    use.read({Memory::kTables, begin, begin + kTableLength});
  }
  return in_flight_.start(use);
}

Fault Machine::set_window() {
  window_ = window();
  const uint32_t height = (registers_.size(kOfmHeight) - 1) * window_.stride_y +
                          (window_.height - 1) * window_.dilation_y + 1;
  const uint32_t width = (registers_.size(kOfmWidth) - 1) * window_.stride_x +
                         (window_.width - 1) * window_.dilation_x + 1;
  if (window_.top + window_.bottom >= height || window_.left + window_.right >= width) {
    return "a padding larger than the input";
  }
  input_height_ = height - window_.top - window_.bottom;
  input_width_ = width - window_.left - window_.right;
  return nullptr;
}

Fault Machine::check(const FeatureMap& to, uint64_t window, uint64_t volume) {
  const uint64_t pixels =
      static_cast<uint64_t>(registers_.size(kOfmHeight)) * registers_.size(kOfmWidth);
  if (window > kMostElements || volume > kMostElements || pixels > kMostElements) {
    return "an operator that is larger than any memory";
  }
  if (needs_ == nullptr) return nullptr;
  const auto grow = [](size_t* size, uint64_t other) {
    if (other > *size) *size = static_cast<size_t>(other);
  };
  grow(&needs_->weights, volume);
  grow(&needs_->patch, window);
  grow(&needs_->depth, to.depth);
  needs_->work += pixels * (volume > window ? volume : window);
  return nullptr;
}

}  // namespace etx::npu
