// SPDX-License-Identifier: BSD-3-Clause
#include <etx/etdump.h>

#include <cstring>

#include "etdump_tables.h"
#include "method_state.h"

namespace etx {
namespace {

/// The tables around a summary and its text, generously.
constexpr size_t kSummarySize = 208;
/// Of the polynomial that is the hash: 2^64 by the golden ratio.
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;

struct Summary {
  double min, max, mean;
  uint32_t not_numbers, infinite;
  uint64_t hash;
};

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

/// An element as a number; 0 of types that are none.
double element(ScalarType type, const uint8_t* bytes) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::Bool: return *bytes;
    case ScalarType::Char: return load<int8_t>(bytes);
    case ScalarType::Short: return load<int16_t>(bytes);
    case ScalarType::Int: return load<int32_t>(bytes);
    case ScalarType::Long: return to_double(load<int64_t>(bytes));
    case ScalarType::Half: return load<Half>(bytes);
    case ScalarType::BFloat16: return load<BFloat16>(bytes);
    case ScalarType::Float: return load<float>(bytes);
    case ScalarType::Double: return load<double>(bytes);
    case ScalarType::UInt16: return load<uint16_t>(bytes);
    case ScalarType::UInt32: return load<uint32_t>(bytes);
    case ScalarType::UInt64:
      return load<uint32_t>(bytes + 4) * 4294967296.0 + load<uint32_t>(bytes);
    default: return 0;
  }
}

Summary summary_of(const etx_tensor& tensor) {
  Summary found{};
  const auto* const bytes = static_cast<const uint8_t*>(tensor.data);
  const size_t size = dump::bytes_of(tensor);
  for (size_t i = 0; i < size; ++i) found.hash = found.hash * kFactor + bytes[i] + 1;
  const auto type = static_cast<ScalarType>(tensor.dtype);
  const size_t width = element_size(type);
  int64_t finite = 0;
  for (size_t i = 0; i < size; i += width) {
    const double number = element(type, bytes + i);
    if (number != number) {
      ++found.not_numbers;
    } else if (number - number != 0) {
      ++found.infinite;
    } else {
      if (finite == 0 || number < found.min) found.min = number;
      if (finite == 0 || number > found.max) found.max = number;
      found.mean += number;
      ++finite;
    }
  }
  if (finite != 0) found.mean /= to_double(finite);
  return found;
}

/// A space and the number in hexadecimal digits.
char* append_hex(char* place, uint64_t number) {
  *place++ = ' ';
  int shift = 60;
  while (shift > 0 && number >> shift == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) *place++ = "0123456789abcdef"[number >> shift & 15];
  return place;
}

char* append_bits(char* place, double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return append_hex(place, bits);
}

}  // namespace

void ETDumpGen::set_statistics(Values values) { set_keep(summarize, values); }

void ETDumpGen::summarize(ETDumpGen& dump, const Place& place, const etx_value& value) {
  if (!place.is_output && !dump.is_selected(place.instruction)) return;
  const dump::Tensors tensors(value);
  for (size_t i = 0; i < tensors.count; ++i) {
    if (tensors.at(i) != nullptr) dump.add_statistics(place, *tensors.at(i));
  }
  if (tensors.count == 0 && dump.take(kSummarySize + dump::length_of(place.delegate))) {
    dump.add_value(place, dump.place_value(value, place.is_output), 0);
  }
}

void ETDumpGen::add_statistics(const Place& place, const etx_tensor& tensor) {
  if (!take(kSummarySize + dump::length_of(place.delegate))) return;
  const Summary summary = summary_of(tensor);
  char note[128] = "etx stats";
  char* end = append_hex(note + 9, static_cast<uint64_t>(tensor.numel));
  end = append_bits(append_bits(append_bits(end, summary.min), summary.max), summary.mean);
  end = append_hex(append_hex(end, summary.not_numbers), summary.infinite);
  end = append_hex(end, summary.hash);
  const Ref name = place_string(note, static_cast<size_t>(end - note));
  const EValue nothing;
  add_value(place, place_value(nothing, place.is_output), name);
}

/// A text that is not looked for again.
ETDumpGen::Ref ETDumpGen::place_string(const char* bytes, size_t size) {
  const Ref ref = place(sizeof(uint32_t) + size + 1, 4);
  const auto length = static_cast<uint32_t>(size);
  std::memcpy(at(ref), &length, sizeof(length));
  std::memcpy(at(ref) + sizeof(length), bytes, size);
  return ref;
}

}  // namespace etx
