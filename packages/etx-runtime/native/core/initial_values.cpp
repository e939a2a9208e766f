// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "method_loader.h"

namespace etx {

Result<Span<const uint8_t>> detail::find_external(const NamedDataMap& data, const void* tensor,
                                                  const char** reason) {
  const fbs::Tensor& stored = *static_cast<const fbs::Tensor*>(tensor);
  const char* key = text(stored.extra_tensor_info()->fully_qualified_name());
  auto layout = data.get_tensor_layout(key);
  auto bytes = data.get_data(key);
  if (!layout.ok() || !bytes.ok()) {
    *reason = "the .ptd file has no such tensor";
    return Error::InvalidExternalData;
  }
  const size_t rank = length(stored.sizes());
  bool same = layout->scalar_type == scalar_type_of(stored) && layout->sizes.size() == rank &&
              layout->dim_order.size() == rank && bytes->size() >= nbytes_of(stored);
  for (uint32_t i = 0; same && i < rank; ++i) {
    same = layout->sizes[i] == stored.sizes()->Get(i) &&
           layout->dim_order[i] == stored.dim_order()->Get(i);
  }
  if (!same) {
    *reason = "the tensor in the .ptd file differs in dtype, shape or layout";
    return Error::InvalidExternalData;
  }
  return *bytes;
}

Error MethodLoader::reset_memory(const MethodState& state, bool zero) {
  const Program& program = *state.program;
  const fbs::Program& root = *static_cast<const fbs::Program*>(program.root_);
  const HierarchicalAllocator* planned = state.memory->planned_memory();
  for (uint32_t i = 1; zero && i < length(state.plan->non_const_buffer_sizes()); ++i) {
    const auto size = static_cast<size_t>(state.plan->non_const_buffer_sizes()->Get(i));
    if (size == 0) continue;
    ETX_ASSIGN(void* const arena, planned->get_offset_address(i - 1, 0, size));
    std::memset(arena, 0, size);
  }
  FreeableBuffer segment;
  uint64_t loaded = UINT64_MAX;
  for (uint32_t i = 0; i < state.values.size(); ++i) {
    const fbs::Tensor* stored = tensor_of(*state.plan, i);
    if (stored == nullptr || stored->allocation_info() == nullptr) continue;
    const size_t size = nbytes_of(*stored);
    void* destination = state.values[i].payload.as_tensor->data;
    if (is_external(*stored)) {
      const char* reason = nullptr;
      ETX_ASSIGN(const Span<const uint8_t> bytes,
                 state.find_external(*state.data, stored, &reason));
      std::memcpy(destination, bytes.data(), size);
    } else if (stored->data_buffer_idx() != 0) {
      const fbs::ExtraTensorInfo* extra = stored->extra_tensor_info();
      const uint64_t which = extra == nullptr ? 0 : extra->mutable_data_segments_idx();
      const auto* offsets = &at(root.mutable_data_segments(), static_cast<size_t>(which));
      if (which != loaded) {
        DataLoader::SegmentInfo info;
        info.segment_type = DataLoader::SegmentInfo::Type::Mutable;
        info.segment_index = offsets->segment_index();
        ETX_ASSIGN(segment, program.load_segment(info.segment_index, info));
        loaded = which;
      }
      const uint64_t offset = offsets->offsets()->Get(stored->data_buffer_idx());
      std::memcpy(destination, segment.bytes() + offset, size);
    }
  }
  return Error::Ok;
}

}  // namespace etx
