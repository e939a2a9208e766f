// SPDX-License-Identifier: BSD-3-Clause
#include <etx/etdump.h>

#include <cstring>

#include "etdump_tables.h"
#include "method_state.h"

namespace etx {
namespace {

/// The tables around a summary without its sizes, generously.
constexpr size_t kSummarySize = 184;
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
    case ScalarType::Long: return detail::to_double(load<int64_t>(bytes));
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
  if (finite != 0) found.mean /= detail::to_double(finite);
  return found;
}

int64_t bits_of(double number) {
  int64_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
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
    dump.add_value(place, dump.place_value(value, place.is_output));
  }
}

/// A Value without a type, so that readers who do not know of it see none: a tensor at offset -1
/// with the six numbers in place of strides.
void ETDumpGen::add_statistics(const Place& from, const etx_tensor& tensor) {
  if (!take(kSummarySize + 8u * tensor.rank + dump::length_of(from.delegate))) return;
  const Summary summary = summary_of(tensor);
  const int64_t numbers[] = {bits_of(summary.min),  bits_of(summary.max),
                             bits_of(summary.mean), summary.not_numbers,
                             summary.infinite,      static_cast<int64_t>(summary.hash)};
  const Ref facts = place_numbers(numbers, sizeof(numbers) / sizeof(*numbers));
  const Ref described = place_described(tensor, facts, UINT64_MAX);
  Ref output = 0;
  if (from.is_output) {
    output = place_table(dump::kOne, 8);
    *(at(output) + 4) = 1;
  }
  const Ref value =
      from.is_output ? place_table(dump::kSummaryOutput, 16) : place_table(dump::kSummary, 8);
  point(value, 4, described);
  if (output != 0) point(value, 8, output);
  add_value(from, value);
}

}  // namespace etx
