// SPDX-License-Identifier: BSD-3-Clause
#include "mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>

#ifdef __linux__
#include <sys/sysmacros.h>
#endif

namespace etx::xnnpack {
namespace {

constexpr char kDeleted[] = " (deleted)";

/// Ticks of a file's times are shorter than this, or whole seconds.
constexpr int64_t kTick = 100'000'000;
constexpr int64_t kSecond = 1'000'000'000;

bool ends_with(const char* text, const char* end) {
  const size_t size = std::strlen(text);
  const size_t count = std::strlen(end);
  return size >= count && std::strcmp(text + size - count, end) == 0;
}

}  // namespace

bool MappedFile::find(const void* data, size_t size) {
  const auto first = reinterpret_cast<uintptr_t>(data);
  if (first >= begin_ && first < end_ && size <= end_ - first) return true;
  begin_ = end_ = 0;
#ifdef __linux__
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  char line[PATH_MAX + 256];
  while (begin_ == 0 && std::fgets(line, sizeof(line), maps) != nullptr) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char rights[5] = "";
    unsigned major_number = 0;
    unsigned minor_number = 0;
    int path = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin,
                    &end, rights, &offset_, &major_number, &minor_number, &inode_, &path) != 7) {
      continue;
    }
    if (first < begin || first >= end) continue;
    if (size > end - first || rights[1] != '-' || inode_ == 0 || line[path] != '/') break;
    line[std::strcspn(line, "\n")] = '\0';
    if (std::strlen(line + path) >= sizeof(path_)) break;
    std::strcpy(path_, line + path);
    device_ = makedev(major_number, minor_number);
    begin_ = begin;
    end_ = end;
  }
  std::fclose(maps);
#endif
  return begin_ != 0;
}

bool MappedFile::read_state(FileState* state) {
#ifdef __linux__
  struct stat found{};
  if (ends_with(path_, kDeleted) || stat(path_, &found) != 0) {
    reason_ = "its program is no longer a file";
    return false;
  }
  if (found.st_ino != inode_ || found.st_dev != device_) {
    reason_ = "another file than the one that was loaded is at the program's path";
    return false;
  }
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t age =
      (now.tv_sec - found.st_ctim.tv_sec) * kSecond + (now.tv_nsec - found.st_ctim.tv_nsec);
  if (age < (found.st_ctim.tv_nsec == 0 ? 2 * kSecond : kTick)) {
    reason_ = "the program was written just now: a later load will keep its weights";
    return false;
  }
  *state = {found.st_dev,         found.st_ino,          static_cast<uint64_t>(found.st_size),
            found.st_ctim.tv_sec, found.st_ctim.tv_nsec, found.st_mtim.tv_sec,
            found.st_mtim.tv_nsec};
  return true;
#else
  static_cast<void>(state);
  reason_ = "this system does not tell which file is mapped";
  return false;
#endif
}

void MappedFile::drop(const void* data, size_t size) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + size) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace etx::xnnpack
