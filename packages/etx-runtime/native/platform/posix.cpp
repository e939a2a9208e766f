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
#include <cstdio>
#include <cstring>
#include <ctime>

#include <etx/platform.h>

extern "C" uint64_t etx_pal_current_ticks(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

extern "C" void etx_pal_log(enum etx_log_level level, const char* message, const char* name) {
  std::fprintf(stderr, "etx %c: %s%s%s\n", level, name == nullptr ? "" : name,
               name == nullptr ? "" : ": ", message);
}

namespace etx {
namespace os {

bool map_file(const std::string& path, void** data, size_t* size, std::string* message) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  const bool is_open = file >= 0 && ::fstat(file, &info) == 0;
  if (!is_open || !S_ISREG(info.st_mode)) {
    *message = path + ": " + (is_open ? "not a regular file" : std::strerror(errno));
    if (file >= 0) ::close(file);
    return false;
  }
  *size = static_cast<size_t>(info.st_size);
  *data = nullptr;
  if (*size != 0) *data = ::mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file, 0);
  const bool failed = *data == MAP_FAILED;
  if (failed) *message = path + ": " + std::strerror(errno);
  ::close(file);
  return !failed;
}

void unmap_file(void* data, size_t size) {
  if (data != nullptr) ::munmap(data, size);
}

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
