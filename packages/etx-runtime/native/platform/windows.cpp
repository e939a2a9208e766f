// SPDX-License-Identifier: BSD-3-Clause
#include "os.h"

#include <windows.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <etx/platform.h>

extern "C" uint64_t etx_pal_current_ticks(void) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

extern "C" void etx_pal_log(enum etx_log_level level, const char* message, const char* name) {
  std::fprintf(stderr, "etx %c: %s%s%s\n", level, name == nullptr ? "" : name,
               name == nullptr ? "" : ": ", message);
}

namespace etx {
namespace os {

bool map_file(const std::string& path, void** data, size_t* size, std::string* message) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  *data = nullptr;
  *size = 0;
  bool ok = file != nullptr && _fseeki64(file, 0, SEEK_END) == 0;
  const long long end = ok ? _ftelli64(file) : -1;
  ok = ok && end >= 0 && _fseeki64(file, 0, SEEK_SET) == 0;
  if (ok && end > 0) {
    *size = static_cast<size_t>(end);
    *data = _aligned_malloc(*size, 64);
    ok = *data != nullptr && std::fread(*data, 1, *size, file) == *size;
  }
  if (file != nullptr) std::fclose(file);
  if (!ok) {
    *message = path + ": cannot be read";
    _aligned_free(*data);
    *data = nullptr;
  }
  return ok;
}

void unmap_file(void* data, size_t) { _aligned_free(data); }

void* open_library(const std::string& path, std::string* message) {
  void* library = ::LoadLibraryA(path.c_str());
  if (library == nullptr) *message = path + ": error " + std::to_string(::GetLastError());
  return library;
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

uint32_t cores() {
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : count;
}

void on_fork(void (*)()) {}

}  // namespace os
}  // namespace etx
