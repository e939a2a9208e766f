// SPDX-License-Identifier: BSD-3-Clause
/// The runner on a machine with an operating system.

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <etx/platform.h>

#include "kernels.h"
#include "runner.h"

namespace {

class Hosted final : public etx_run::Platform {
 public:
  uint8_t* allocate(size_t size, size_t) override {
    return static_cast<uint8_t*>(std::aligned_alloc(16, (size + 16) / 16 * 16));
  }
  const char* memory_name(size_t) override { return "heap"; }

  int64_t file_size(const char* path) override {
    std::FILE* const file = std::fopen(path, "rb");
    if (file == nullptr) return -1;
    const bool ok = std::fseek(file, 0, SEEK_END) == 0;
    const long size = ok ? std::ftell(file) : -1;
    std::fclose(file);
    return size;
  }

  bool read(const char* path, uint8_t* to, size_t size) override {
    std::FILE* const file = std::fopen(path, "rb");
    if (file == nullptr) return false;
    const bool ok = std::fread(to, 1, size, file) == size;
    std::fclose(file);
    return ok;
  }

  bool write(const char* path, const void* from, size_t size) override {
    std::FILE* const file = std::fopen(path, "wb");
    if (file == nullptr) return false;
    const bool ok = std::fwrite(from, 1, size, file) == size;
    return std::fclose(file) == 0 && ok;
  }

  void print(const char* text) override { std::fputs(text, stdout); }
};

}  // namespace

extern "C" uint64_t etx_pal_current_ticks(void) {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

int main(int argc, char** argv) {
  Hosted platform;
  return etx_run::run(argc - 1, argv + 1, platform, etx_run::kernels());
}
