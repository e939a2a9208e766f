// SPDX-License-Identifier: BSD-3-Clause
#include "folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace etx::xnnpack {
namespace {

constexpr char kMagic[8] = {'E', 'T', 'X', 'P', 'A', 'C', 'K', '1'};
constexpr char kEnding[] = ".packed";
constexpr char kFresh[] = ".new";
constexpr size_t kPage = 4096;
/// Kernels read, but do not use, some bytes behind weights.
constexpr size_t kSlack = 128;
constexpr size_t kMostKey = size_t{1} << 20;
constexpr time_t kAbandoned = 3600;
/// Every file system keeps times in multiples of this many seconds.
constexpr time_t kTick = 2;

/// Begins a file; then the key, zeros up to a page, the bytes, zeros.
struct Header {
  char magic[8];
  uint64_t check;  ///< Of what follows, key included.
  uint64_t key_size;
  uint64_t size;
  uint64_t bytes_check;
  int64_t written, written_ns;
};

size_t place_of(uint64_t key_size) {
  return (sizeof(Header) + static_cast<size_t>(key_size) + kPage - 1) / kPage * kPage;
}

uint64_t check_of(const Header& header, const void* key) {
  const Digest of_key = digest_of(key, static_cast<size_t>(header.key_size));
  Header copy = header;
  std::memcpy(copy.magic, &of_key.high, sizeof(copy.magic));
  copy.check = of_key.low;
  return digest_of(&copy, sizeof(copy)).low;
}

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

using Name = char[PATH_MAX];

void name_of(const char* folder, const Digest& digest, Name name) {
  std::snprintf(name, PATH_MAX, "%s/%016" PRIx64 "%016" PRIx64 "%s", folder, digest.high,
                digest.low, kEnding);
}

bool write_all(int file, const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = write(file, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

/// What is wrong with a mapped file of `found`'s size and times, or null.
const char* why_not(const void* mapping, const struct stat& found, const void* key,
                    size_t key_size) {
  Header header;
  std::memcpy(&header, mapping, sizeof(header));
  const auto size = static_cast<uint64_t>(found.st_size);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return "not a file of packed weights";
  if (header.key_size > kMostKey || header.key_size > size - sizeof(header)) return "damaged";
  const char* stored = static_cast<const char*>(mapping) + sizeof(header);
  if (header.check != check_of(header, stored)) return "damaged";
  if (header.size > size || place_of(header.key_size) + header.size + kSlack != size) {
    return "cut or grown";
  }
  if (found.st_mtim.tv_sec != header.written || found.st_mtim.tv_nsec != header.written_ns) {
    return "changed since it was written";
  }
  const bool is_equal = header.key_size == key_size && std::memcmp(stored, key, key_size) == 0;
  return is_equal ? nullptr : "of other weights";
}

const char* why_not_owned(const struct stat& found, bool is_folder) {
  if (is_folder ? !S_ISDIR(found.st_mode) : !S_ISREG(found.st_mode)) {
    return is_folder ? "not a folder" : "not a file";
  }
  if (found.st_uid != geteuid()) return "belongs to another user";
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write it";
  return nullptr;
}

}  // namespace

void complain(const char* format, ...) {
  char text[PATH_MAX + 256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "etx-backend-xnnpack: cache of weights: %s\n", text);
}

void unmap(const MappedWeights& weights) { munmap(weights.mapping, weights.mapping_size); }

bool WeightFolder::open(const char* path, uint64_t limit, bool must_verify) {
  path_[0] = '\0';
  if (ETX_XNNPACK_BUILD[0] == '\0') {
    complain("this XNNPACK is built of sources that may change; not used");
    return false;
  }
  if (std::strlen(path) >= sizeof(path_)) {
    complain("a path of %zu bytes is too long", std::strlen(path));
    return false;
  }
  struct stat found{};
  mkdir(path, 0700);
  if (stat(path, &found) != 0) {
    complain("%s: %s", path, std::strerror(errno));
    return false;
  }
  const char* reason = why_not_owned(found, true);
  if (reason != nullptr) {
    complain("%s: %s; not used", path, reason);
    return false;
  }
  std::strcpy(path_, path);
  limit_ = limit;
  must_verify_ = must_verify;
  return true;
}

bool WeightFolder::find(const Digest& name, const void* key, size_t key_size,
                        MappedWeights* weights) const {
  Name path;
  name_of(path_, name, path);
  Descriptor file;
  file.number = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat found{};
  if (file.number < 0 && errno == ENOENT) return false;
  if (file.number < 0 || fstat(file.number, &found) != 0) {
    complain("%s: %s; packed again", path, std::strerror(errno));
    return false;
  }
  const auto size = static_cast<size_t>(found.st_size);
  const char* reason = why_not_owned(found, false);
  if (reason == nullptr && size < kPage + kSlack) reason = "cut";
  void* mapping = MAP_FAILED;
  if (reason == nullptr) {
    mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number, 0);
    reason = mapping == MAP_FAILED ? std::strerror(errno) : why_not(mapping, found, key, key_size);
  }
  Header header{};
  char* bytes = nullptr;
  if (reason == nullptr) {
    std::memcpy(&header, mapping, sizeof(header));
    bytes = static_cast<char*>(mapping) + place_of(key_size);
    if (must_verify_ && digest_of(bytes, header.size).low != header.bytes_check) {
      reason = "its bytes are damaged";
    }
  }
  if (reason != nullptr) {
    if (mapping != MAP_FAILED) munmap(mapping, size);
    complain("%s: %s; packed again", path, reason);
    return false;
  }
  const timespec used[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  futimens(file.number, used);
  *weights = {mapping, size, bytes, static_cast<size_t>(header.size)};
  return true;
}

bool WeightFolder::store(const Digest& name, const void* key, size_t key_size, const void* bytes,
                         size_t size, IsInUse is_in_use) const {
  static unsigned counter = 0;
  static constexpr char kZeros[kPage] = {};
  const size_t place = place_of(key_size);
  if (!make_room(place + size + kSlack, is_in_use)) return false;
  const timespec now{time(nullptr) / kTick * kTick, 0};
  Header header{{}, 0, key_size, size, digest_of(bytes, size).low, now.tv_sec, now.tv_nsec};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.check = check_of(header, key);
  Name path;
  name_of(path_, name, path);
  Name fresh;
  const timespec times[] = {now, now};
  Descriptor file;
  do {  // A killed process of this number may have left some.
    const unsigned number = __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
    std::snprintf(fresh, sizeof(fresh), "%s/%d-%u%s", path_, static_cast<int>(getpid()), number,
                  kFresh);
    file.number = ::open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  } while (file.number < 0 && errno == EEXIST);
  const bool is_written =
      file.number >= 0 && write_all(file.number, &header, sizeof(header)) &&
      write_all(file.number, key, key_size) &&
      write_all(file.number, kZeros, place - sizeof(header) - key_size) &&
      write_all(file.number, bytes, size) && write_all(file.number, kZeros, kSlack) &&
      futimens(file.number, times) == 0 && fsync(file.number) == 0 && rename(fresh, path) == 0;
  if (is_written) return true;
  complain("%s: %s; not kept", path, std::strerror(errno));
  if (file.number >= 0) unlink(fresh);
  return false;
}

/// Removes the file that was not used for longest, and abandoned ones, until `size` bytes fit.
bool WeightFolder::make_room(uint64_t size, IsInUse is_in_use) const {
  for (;;) {
    uint64_t total = size;
    if (size > limit_) is_in_use = [](const Digest&) { return true; };
    Name oldest = "";
    timespec used{};
    DIR* folder = opendir(path_);
    if (folder == nullptr) {
      complain("%s: %s; not kept", path_, std::strerror(errno));
      return false;
    }
    for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
      Name path;
      struct stat found{};
      const size_t length = std::strlen(entry->d_name);
      if (length > 100) continue;
      std::snprintf(path, sizeof(path), "%s/%.100s", path_, entry->d_name);
      if (stat(path, &found) != 0 || !S_ISREG(found.st_mode)) continue;
      total += static_cast<uint64_t>(found.st_size);
      if (length > sizeof(kFresh) &&
          std::strcmp(entry->d_name + length - (sizeof(kFresh) - 1), kFresh) == 0) {
        if (time(nullptr) - found.st_mtim.tv_sec > kAbandoned) unlink(path);
        continue;
      }
      Digest name{};
      int end = 0;
      if (std::sscanf(entry->d_name, "%16" SCNx64 "%16" SCNx64 "%n", &name.high, &name.low, &end) !=
              2 ||
          end != 32 || std::strcmp(entry->d_name + end, kEnding) != 0 || is_in_use(name)) {
        continue;
      }
      const bool is_older =
          found.st_atim.tv_sec < used.tv_sec ||
          (found.st_atim.tv_sec == used.tv_sec && found.st_atim.tv_nsec < used.tv_nsec);
      if (oldest[0] != '\0' && !is_older) continue;
      std::strcpy(oldest, path);
      used = found.st_atim;
    }
    closedir(folder);
    if (total <= limit_) return true;
    if (oldest[0] == '\0' || unlink(oldest) != 0) {
      complain("%s: full (%" PRIu64 " of %" PRIu64 " bytes with weights of %" PRIu64 "); not kept",
               path_, total, limit_, size);
      return false;
    }
  }
}

}  // namespace etx::xnnpack
