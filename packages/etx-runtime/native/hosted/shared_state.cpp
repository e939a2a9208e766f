// SPDX-License-Identifier: BSD-3-Clause
#include "shared_state.h"

#include "../core/format.h"

namespace etx {

std::vector<StatePlaces> find_state_arenas(const void* opaque) {
  const fbs::ExecutionPlan& plan = *as_plan(opaque);
  const size_t count = length(plan.non_const_buffer_sizes());
  std::vector<StatePlaces> arenas(count == 0 ? 0 : count - 1);
  std::vector<bool> is_mixed(arenas.size(), false);
  if (!is_mixed.empty()) is_mixed[0] = true;
  for (size_t i = 0; i < length(plan.values()); ++i) {
    const fbs::Tensor* tensor = tensor_of(plan, i);
    if (tensor == nullptr || tensor->allocation_info() == nullptr) continue;
    const fbs::AllocationDetails& place = *tensor->allocation_info();
    const size_t arena = place.memory_id() - size_t{1};
    if (arena >= arenas.size()) continue;
    const fbs::ExtraTensorInfo* extra = tensor->extra_tensor_info();
    const bool has_name = extra != nullptr && length(extra->fully_qualified_name()) != 0;
    if (!has_name) {
      is_mixed[arena] = true;
      continue;
    }
    const uint64_t offset =
        static_cast<uint64_t>(place.memory_offset_high()) << 32 | place.memory_offset_low();
    arenas[arena][text(extra->fully_qualified_name())] = {offset, nbytes_of(*tensor)};
  }
  for (size_t i = 0; i < arenas.size(); ++i) {
    if (is_mixed[i]) arenas[i].clear();
  }
  return arenas;
}

bool is_shared(const StatePlaces& a, const StatePlaces& b) {
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
