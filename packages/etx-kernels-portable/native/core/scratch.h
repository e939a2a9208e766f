// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SCRATCH_H_
#define ETX_PORTABLE_SCRATCH_H_

#include <cstdint>

#include <etx/kernel.h>
#include <etx/result.h>

namespace etx::portable {

/// Memory for `count` elements of `size` bytes, until the kernel returns; one byte for none. Null
/// when there is not enough: `reason`, a literal, is then recorded.
void* scratch_bytes(Context& context, const char* reason, int64_t count, size_t size);

/// `ETX_ASSIGN(float* const x, scratch<float>(context, n, "no temporary memory for …"))`.
/// Errors: MemoryAllocationFailed, for a negative count, too.
template <typename T>
Result<T*> scratch(Context& context, int64_t count, const char* reason) {
  static_assert(alignof(T) <= 64);
  T* const memory = static_cast<T*>(scratch_bytes(context, reason, count, sizeof(T)));
  if (memory == nullptr) return Error::MemoryAllocationFailed;
  return memory;
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_SCRATCH_H_
