// SPDX-License-Identifier: BSD-3-Clause
#include "os.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <cerrno>
#include <cstring>

#include <etx/platform.h>

extern "C" uint64_t etx_pal_current_ticks(void) { return etx::os::nanoseconds(); }

namespace etx {
namespace os {

namespace {

bool check_file(int file, uint64_t* size, std::string* message) {
  struct stat info{};
  if (file < 0 || ::fstat(file, &info) != 0) {
    *message = std::strerror(errno);
    return false;
  }
  *size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode)) *message = "not a regular file";
  return S_ISREG(info.st_mode);
}

}  // namespace

bool open_file(const std::string& path, int* file, uint64_t* size, std::string* message) {
  do {
    *file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (*file < 0 && errno == EINTR);
  return check_file(*file, size, message);
}

bool copy_file(int descriptor, int* file, uint64_t* size, std::string* message) {
  *file = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return check_file(*file, size, message);
}

bool read_file(int file, uint64_t offset, void* data, size_t size) {
  constexpr size_t kMost = size_t{1} << 30;
  auto* target = static_cast<uint8_t*>(data);
  while (size > 0) {
    const size_t asked = size < kMost ? size : kMost;
    const ::ssize_t count = ::pread(file, target, asked, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const auto done = static_cast<size_t>(count);
    target += done;
    offset += done;
    size -= done;
  }
  return true;
}

void close_file(int file) { ::close(file); }

bool map_file(int file, uint64_t offset, size_t size, void** data, std::string* message) {
  *data = nullptr;
  if (size == 0) return true;
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(offset));
  if (mapping == MAP_FAILED) {
    *message = std::strerror(errno);
    return false;
  }
  *data = mapping;
  return true;
}

void unmap_file(void* data, size_t size) {
  if (data != nullptr) ::munmap(data, size);
}

uint64_t map_granularity() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

void* open_library(const std::string& path, std::string* message) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *message = ::dlerror();
  return library;
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

uint32_t cores() {
#if defined(__linux__)
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    const int count = CPU_COUNT(&cores);
    if (count > 0) return static_cast<uint32_t>(count);
  }
#endif
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<uint32_t>(count) : 1;
}

void on_fork(void (*child)()) { ::pthread_atfork(nullptr, nullptr, child); }

}  // namespace os
}  // namespace etx
