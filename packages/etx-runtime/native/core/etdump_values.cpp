// SPDX-License-Identifier: BSD-3-Clause
#include <etx/etdump.h>

#include <cstring>

#include "etdump_tables.h"
#include "method_state.h"

namespace etx {
namespace {

using dump::bytes_of;
using dump::Tensors;
using dump::ValueType;

/// The tables around a value, and those of a tensor without its numbers; generously.
constexpr size_t kValueSize = 112;
constexpr size_t kTensorSize = 64;
constexpr size_t kValueAlignment = 64;

size_t rounded(size_t size) {
  return (size + kValueAlignment - 1) / kValueAlignment * kValueAlignment;
}

}  // namespace

void ETDumpGen::set_debug_buffer(Span<uint8_t> debug_buffer, Values values) {
  debug_ = debug_buffer;
  debug_used_ = 0;
  set_keep(copy, values);
}

void ETDumpGen::set_keep(Keep keep, Values values) {
  keep_ = values == Values::None ? nullptr : keep;
  keep_results_ = values == Values::All ? keep_results : nullptr;
}

bool ETDumpGen::is_selected(uint32_t instruction) const {
  for (const Range& range : ranges_) {
    if (range.first <= instruction && instruction <= range.last) return true;
  }
  return ranges_.empty();
}

void ETDumpGen::keep_results(ETDumpGen& dump, const TraceEvent& event) {
  if (event.args.size() == 0) return;
  const Place place = {event.chain, event.instruction, nullptr, -1, false};
  if (event.kind == TraceEvent::Kind::Delegate) {
    for (const etx_value* arg : event.args) dump.keep_(dump, place, *arg);
  }
  if (event.signature == nullptr) return;
  if (*event.signature == '*') {
    return dump.keep_(dump, place, *event.args[event.args.size() - 1]);
  }
  const char* signature = event.signature;
  for (size_t i = 0; i < event.args.size() && *signature != '\0'; ++i) {
    Parameter parameter;
    signature = read_parameter(signature, &parameter);
    if (parameter.written || parameter.letter == 'v') dump.keep_(dump, place, *event.args[i]);
  }
}

void ETDumpGen::copy(ETDumpGen& dump, const Place& place, const etx_value& value) {
  if (!place.is_output && !dump.is_selected(place.instruction)) return;
  const Tensors tensors(value);
  uint64_t size = kValueSize + dump::length_of(place.delegate);
  uint64_t debug_bytes = 0;
  for (size_t i = 0; i < tensors.count; ++i) {
    if (tensors.at(i) == nullptr) continue;
    size += kTensorSize + 16u * tensors.at(i)->rank;
    debug_bytes += rounded(bytes_of(*tensors.at(i)));
  }
  if (!dump.take(size)) {
    dump.missing_debug_bytes_ += debug_bytes;
    return;
  }
  if (debug_bytes > dump.debug_.size() - dump.debug_used_) {
    ++dump.missing_values_;
    dump.missing_debug_bytes_ += debug_bytes;
    return;
  }
  dump.add_value(place, dump.place_value(value, place.is_output));
}

/// A DebugEvent of a Value.
void ETDumpGen::add_value(const Place& from, Ref entry) {
  const Ref name = from.delegate == nullptr ? 0 : place_text({from.delegate});
  const Ref event = place_table(name == 0 ? dump::kDebug : dump::kDebugInDelegate, 24);
  std::memcpy(at(event) + 4, &from.instruction, 4);
  std::memcpy(at(event) + 8, &from.chain, 8);
  point(event, 16, entry);
  if (name != 0) point(event, 20, name);
  const Ref ref = place_table(dump::kDebugEvent, 8);
  point(ref, 4, event);
  append(ref);
}

ETDumpGen::Ref ETDumpGen::place_numbers(const int64_t* numbers, size_t count) {
  const Ref items = place(8 * count, 8);
  if (count != 0) std::memcpy(at(items), numbers, 8 * count);
  const Ref list = place(4, 4);
  const auto size = static_cast<uint32_t>(count);
  std::memcpy(at(list), &size, sizeof(size));
  return list;
}

ETDumpGen::Ref ETDumpGen::place_sizes(const int32_t* sizes, size_t count) {
  int64_t numbers[kMaxRank] = {};
  for (size_t i = 0; i < count; ++i) numbers[i] = sizes[i];
  return place_numbers(numbers, count);
}

ETDumpGen::Ref ETDumpGen::place_tensor(const etx_tensor& tensor) {
  const size_t size = bytes_of(tensor);
  const Ref strides = place_sizes(tensor.strides, tensor.rank);
  const Ref ref = place_described(tensor, strides, debug_used_);
  if (size != 0) std::memcpy(debug_.data() + debug_used_, tensor.data, size);
  const size_t padded = rounded(size);
  if (padded != size) std::memset(debug_.data() + debug_used_ + size, 0, padded - size);
  debug_used_ += padded;
  return ref;
}

/// A Tensor with what lies in place of its strides and offset.
ETDumpGen::Ref ETDumpGen::place_described(const etx_tensor& tensor, Ref strides, uint64_t offset) {
  const Ref sizes = place_sizes(tensor.sizes, tensor.rank);
  const Ref ref = place_table(dump::kTensor, 24);
  point(ref, 4, sizes);
  point(ref, 8, strides);
  std::memcpy(at(ref) + 12, &tensor.dtype, 1);
  std::memcpy(at(ref) + 16, &offset, sizeof(offset));
  return ref;
}

ETDumpGen::Ref ETDumpGen::place_tensors(const etx_value& list) {
  const Tensors tensors(list);
  uint8_t* const refs = memory_.data() + sizeof(Ref) * (runs_ + events_);
  size_t count = 0;
  for (size_t i = 0; i < tensors.count; ++i) {
    if (tensors.at(i) == nullptr) continue;
    const Ref tensor = place_tensor(*tensors.at(i));
    std::memcpy(refs + sizeof(Ref) * count++, &tensor, sizeof(tensor));
  }
  const Ref vector = place_list(refs, count);
  const Ref ref = place_table(dump::kOne, 8);
  point(ref, 4, vector);
  return ref;
}

/// A Value with its own vtable before it: which fields it has differs from one to the next.
ETDumpGen::Ref ETDumpGen::place_value(const etx_value& value, bool is_output) {
  ValueType type = ValueType::Null;
  Ref target = 0;
  const Tensors tensors(value);
  if (value.tag == ETX_TAG_TENSOR) {
    type = ValueType::Tensor;
    target = place_tensor(*value.payload.as_tensor);
  } else if (tensors.count != 0) {
    type = ValueType::TensorList;
    target = place_tensors(value);
  } else if (value.tag == ETX_TAG_INT || value.tag == ETX_TAG_DOUBLE) {
    type = value.tag == ETX_TAG_INT ? ValueType::Int : ValueType::Double;
    target = place_table(dump::kNumber, 16);
    std::memcpy(at(target) + 8, &value.payload, 8);
  } else if (value.tag == ETX_TAG_BOOL) {
    type = ValueType::Bool;
    target = place_table(dump::kOne, 8);
    *(at(target) + 4) = value.payload.as_bool;
  }
  Ref output = 0;
  if (is_output) {
    output = place_table(dump::kOne, 8);
    *(at(output) + 4) = 1;
  }
  constexpr uint8_t kSlots[] = {0, 3, 6, 4, 5, 1, 2};
  uint16_t vtable[10] = {20, 16, 8};
  if (target != 0) vtable[2 + kSlots[static_cast<size_t>(type)]] = 4;
  if (is_output) vtable[9] = 12;
  const Ref fields = place(sizeof(vtable), 8);
  std::memcpy(at(fields), vtable, sizeof(vtable));
  const Ref ref = place_table(static_cast<uint16_t>(0), 16);
  const int32_t distance = static_cast<int32_t>(fields) - static_cast<int32_t>(ref);
  std::memcpy(at(ref), &distance, sizeof(distance));
  if (target != 0) point(ref, 4, target);
  *(at(ref) + 8) = static_cast<uint8_t>(type);
  if (is_output) point(ref, 12, output);
  return ref;
}

}  // namespace etx
