// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_CACHE_FOLDER_H_
#define ETX_XNNPACK_CACHE_FOLDER_H_

#include <climits>
#include <cstddef>
#include <cstdint>

#include "digest.h"

namespace etx::xnnpack {

/// Packed weights, mapped from a file.
struct MappedWeights {
  void* mapping;
  size_t mapping_size;
  char* bytes;
  size_t size;
};
void unmap(const MappedWeights& weights);

/// Tells which files must stay: those that this process uses.
using IsInUse = bool (*)(const Digest& name);

/// Keeps packed weights as files: one for each key, which says all that the bytes depend on.
///
/// A file is written under a name of its own, synced and then renamed, so that any number of
/// processes may read and write at once. It is used only when it belongs to this user, nobody else
/// may write it, it has not been written since, its checksum is right and its whole key is equal;
/// otherwise a line on stderr says why, and it is written again.
class WeightFolder {
 public:
  /// Uses the folder `path`, which is made where there is none, for at most `limit` bytes. False
  /// (and a line on stderr) when it cannot be used. `must_verify`: bytes are read and compared
  /// with their checksum at each load.
  bool open(const char* path, uint64_t limit, bool must_verify);
  bool is_open() const { return path_[0] != '\0'; }

  /// Maps the file of `key`. False when there is none that can be used.
  bool find(const Digest& name, const void* key, size_t key_size, MappedWeights* found) const;
  /// Writes the file of `key`; first removes files, those that were not used for longest first,
  /// where they would be more than the limit. False when it could not: a line on stderr says why.
  bool store(const Digest& name, const void* key, size_t key_size, const void* bytes, size_t size,
             IsInUse is_in_use) const;

 private:
  bool make_room(uint64_t size, IsInUse is_in_use) const;

  char path_[PATH_MAX - 128] = "";
  uint64_t limit_ = 0;
  bool must_verify_ = false;
};

/// A line on stderr: what is not kept or not used, and why.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_CACHE_FOLDER_H_
