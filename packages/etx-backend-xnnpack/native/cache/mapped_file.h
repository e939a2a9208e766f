// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_CACHE_MAPPED_FILE_H_
#define ETX_XNNPACK_CACHE_MAPPED_FILE_H_

#include <climits>
#include <cstddef>
#include <cstdint>

namespace etx::xnnpack {

/// Which file, and which state of it. Whoever changes a file changes its last time, which
/// programs cannot set.
struct FileState {
  uint64_t device, inode, size;
  int64_t changed, changed_ns, written, written_ns;
};

/// The read-only mapping of a file around an address, found in the process's own list of mappings.
class MappedFile {
 public:
  /// True when `size` bytes at `data` are mapped from a file and can never be written through
  /// this mapping. Asks the system only when they are not in the mapping that was found last.
  bool find(const void* data, size_t size);

  /// True when the found file has the state that `state` is set to, and has had it long enough
  /// that a later change shows in its times. Otherwise `reason()` says what is wrong.
  bool read_state(FileState* state);

  /// The offset in the file of `data`, which was found.
  uint64_t offset_of(const void* data) const {
    return offset_ + (reinterpret_cast<uintptr_t>(data) - begin_);
  }
  const char* reason() const { return reason_; }

  /// Gives back the memory of what was found; it is read from the file again when it is used.
  void drop(const void* data, size_t size);

 private:
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  uint64_t offset_ = 0;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  const char* reason_ = "";
  char path_[PATH_MAX] = "";
};

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_CACHE_MAPPED_FILE_H_
