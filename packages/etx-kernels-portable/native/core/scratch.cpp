// SPDX-License-Identifier: BSD-3-Clause
#include "core/scratch.h"

namespace etx::portable {

void* scratch_bytes(Context& context, const char* reason, int64_t count, size_t size) {
  const size_t most = PTRDIFF_MAX / size;
  void* memory = nullptr;
  if (count >= 0 && static_cast<uint64_t>(count) <= most) {
    memory = context.allocate_temp(count == 0 ? 1 : static_cast<size_t>(count) * size);
  }
  if (memory == nullptr) (void)context.fail(Error::MemoryAllocationFailed, reason);
  return memory;
}

}  // namespace etx::portable
