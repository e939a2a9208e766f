// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_HOSTED_MUTABLE_BUFFERS_H_
#define ETX_NATIVE_HOSTED_MUTABLE_BUFFERS_H_

#include <map>
#include <string>
#include <vector>

#include <etx/method_meta.h>

namespace etx {

/// Where a named buffer lies in its arena.
struct BufferPlace {
  uint64_t offset;
  size_t size;
  bool operator==(const BufferPlace& other) const {
    return offset == other.offset && size == other.size;
  }
};

using BufferPlaces = std::map<std::string, BufferPlace>;

/// The arenas of a method, by index, that hold named buffers and nothing else: views of a
/// buffer and values that replace it lie within it. Empty for others and for the first, which holds
/// what is computed.
std::vector<BufferPlaces> find_buffer_arenas(const void* plan);

/// True when two methods place at least one buffer alike, and none of the same name differently.
bool is_shared(const BufferPlaces& a, const BufferPlaces& b);

}  // namespace etx

#endif  // ETX_NATIVE_HOSTED_MUTABLE_BUFFERS_H_
