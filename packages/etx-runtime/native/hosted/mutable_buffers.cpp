// SPDX-License-Identifier: BSD-3-Clause
#include "mutable_buffers.h"

#include <algorithm>

#include "../core/format.h"

namespace etx {
namespace {

/// True when each of `unnamed` lies within a named place: a view of it, or its next value.
bool covers(const BufferPlaces& named, const std::vector<BufferPlace>& unnamed) {
  std::vector<BufferPlace> sorted;
  for (const auto& item : named) sorted.push_back(item.second);
  const auto before = [](const BufferPlace& a, const BufferPlace& b) {
    return a.offset < b.offset;
  };
  std::sort(sorted.begin(), sorted.end(), before);
  return std::all_of(unnamed.begin(), unnamed.end(), [&](const BufferPlace& place) {
    const auto after = std::upper_bound(sorted.begin(), sorted.end(), place, before);
    if (after == sorted.begin()) return false;
    const BufferPlace& around = *(after - 1);
    const uint64_t skipped = place.offset - around.offset;
    return skipped <= around.size && place.size <= around.size - skipped;
  });
}

}  // namespace

std::vector<BufferPlaces> find_buffer_arenas(const void* opaque) {
  const fbs::ExecutionPlan& plan = *as_plan(opaque);
  const size_t count = length(plan.non_const_buffer_sizes());
  std::vector<BufferPlaces> arenas(count == 0 ? 0 : count - 1);
  std::vector<std::vector<BufferPlace>> unnamed(arenas.size());
  for (size_t i = 0; i < length(plan.values()); ++i) {
    const fbs::Tensor* tensor = tensor_of(plan, i);
    if (tensor == nullptr || tensor->allocation_info() == nullptr) continue;
    const fbs::AllocationDetails& details = *tensor->allocation_info();
    const size_t arena = details.memory_id() - size_t{1};
    if (arena == 0 || arena >= arenas.size()) continue;
    const uint64_t offset =
        static_cast<uint64_t>(details.memory_offset_high()) << 32 | details.memory_offset_low();
    const BufferPlace place = {offset, nbytes_of(*tensor)};
    const fbs::ExtraTensorInfo* extra = tensor->extra_tensor_info();
    if (extra != nullptr && length(extra->fully_qualified_name()) != 0) {
      arenas[arena][text(extra->fully_qualified_name())] = place;
    } else {
      unnamed[arena].push_back(place);
    }
  }
  for (size_t i = 0; i < arenas.size(); ++i) {
    if (!covers(arenas[i], unnamed[i])) arenas[i].clear();
  }
  return arenas;
}

bool is_shared(const BufferPlaces& a, const BufferPlaces& b) {
  bool found = false;
  for (const auto& [name, place] : a) {
    const auto other = b.find(name);
    if (other == b.end()) continue;
    if (!(other->second == place)) return false;
    found = true;
  }
  return found;
}

}  // namespace etx
