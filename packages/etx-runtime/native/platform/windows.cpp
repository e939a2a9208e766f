// SPDX-License-Identifier: BSD-3-Clause
#include "os.h"

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <etx/platform.h>

extern "C" uint64_t etx_pal_current_ticks(void) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

namespace etx {
namespace os {

namespace {

std::mutex reading;

bool check_file(int file, uint64_t* size, std::string* message) {
  const long long end = file < 0 ? -1 : _filelengthi64(file);
  *size = end < 0 ? 0 : static_cast<uint64_t>(end);
  if (end < 0) *message = "cannot be read";
  return end >= 0;
}

}  // namespace

bool open_file(const std::string& path, int* file, uint64_t* size, std::string* message) {
  *file = _open(path.c_str(), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
  return check_file(*file, size, message);
}

bool copy_file(int descriptor, int* file, uint64_t* size, std::string* message) {
  *file = _dup(descriptor);
  return check_file(*file, size, message);
}

bool read_file(int file, uint64_t offset, void* data, size_t size) {
  constexpr size_t kMost = size_t{1} << 30;
  const std::lock_guard<std::mutex> lock(reading);
  const long long before = _telli64(file);
  bool ok = _lseeki64(file, static_cast<long long>(offset), SEEK_SET) >= 0;
  auto* target = static_cast<char*>(data);
  while (ok && size > 0) {
    const int count = _read(file, target, static_cast<unsigned>(size < kMost ? size : kMost));
    ok = count > 0;
    if (!ok) break;
    target += count;
    size -= static_cast<size_t>(count);
  }
  _lseeki64(file, before, SEEK_SET);
  return ok;
}

void close_file(int file) { _close(file); }

bool map_file(int file, uint64_t offset, size_t size, void** data, std::string* message) {
  *data = nullptr;
  if (size == 0) return true;
  *data = _aligned_malloc(size, 64);
  const bool ok = *data != nullptr && read_file(file, offset, *data, size);
  if (!ok) {
    *message = "cannot be read";
    _aligned_free(*data);
    *data = nullptr;
  }
  return ok;
}

void unmap_file(void* data, size_t) { _aligned_free(data); }

uint64_t map_granularity() { return 16; }

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
