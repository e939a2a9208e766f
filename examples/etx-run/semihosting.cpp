// SPDX-License-Identifier: BSD-3-Clause
/// The runner on a Cortex-M without an operating system; files, text and the exit code go to a
/// debugger or emulator by Arm's semihosting (Semihosting for AArch32 and AArch64, release 2024Q3).

#include <etx/platform.h>
#include <etx/span.h>

#include <cstring>

#include "kernels.h"
#include "runner.h"
#include "text.h"

extern "C" {
extern uint8_t sram_begin[], sram_end[], dram_begin[], dram_end[];
}

namespace {

enum : uint32_t {
  SYS_OPEN = 0x01,
  SYS_CLOSE = 0x02,
  SYS_WRITE0 = 0x04,
  SYS_WRITE = 0x05,
  SYS_READ = 0x06,
  SYS_FLEN = 0x0C,
  SYS_GET_CMDLINE = 0x15,
  SYS_EXIT_EXTENDED = 0x20,
};
enum : uint32_t { kReadBinary = 1, kWriteBinary = 5 };

int32_t call(uint32_t operation, const void* argument) {
  register uint32_t r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int32_t>(r0);
}

uint32_t address(const void* pointer) { return reinterpret_cast<uint32_t>(pointer); }

class File {
 public:
  File(const char* path, uint32_t mode) {
    const uint32_t block[] = {address(path), mode, std::strlen(path)};
    handle_ = call(SYS_OPEN, block);
  }
  ~File() {
    const uint32_t block[] = {static_cast<uint32_t>(handle_)};
    if (is_open()) call(SYS_CLOSE, block);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return handle_ >= 0; }
  int32_t size() const {
    const uint32_t block[] = {static_cast<uint32_t>(handle_)};
    return call(SYS_FLEN, block);
  }
  /// True when all bytes were moved.
  bool transfer(uint32_t operation, const void* data, size_t size) const {
    const uint32_t block[] = {static_cast<uint32_t>(handle_), address(data), size};
    return call(operation, block) == 0;
  }

 private:
  int32_t handle_;
};

/// Consecutive pieces of one memory.
struct Region {
  const char* name;
  uint8_t* next;
  uint8_t* end;

  uint8_t* take(size_t size) {
    const size_t rounded = (size + 15) / 16 * 16;
    if (rounded < size || rounded > static_cast<size_t>(end - next)) return nullptr;
    uint8_t* const piece = next;
    next += rounded;
    return piece;
  }
};

/// Arena 1 lies in SRAM, all else in DRAM.
class Board final : public etx_run::Platform {
 public:
  uint8_t* allocate(size_t size, size_t memory_id) override { return region(memory_id).take(size); }
  const char* memory_name(size_t memory_id) override { return region(memory_id).name; }

  int64_t file_size(const char* path) override {
    const File file(path, kReadBinary);
    return file.is_open() ? file.size() : -1;
  }
  bool read(const char* path, uint8_t* to, size_t size) override {
    const File file(path, kReadBinary);
    return file.is_open() && file.transfer(SYS_READ, to, size);
  }
  bool write(const char* path, const void* from, size_t size) override {
    const File file(path, kWriteBinary);
    return file.is_open() && file.transfer(SYS_WRITE, from, size);
  }
  void print(const char* text) override { call(SYS_WRITE0, text); }

 private:
  Region& region(size_t memory_id) { return memory_id == 1 ? sram_ : dram_; }

  Region sram_{"SRAM", sram_begin, sram_end};
  Region dram_{"DRAM", dram_begin, dram_end};
};

constexpr size_t kMaxWords = 64;

/// Splits the command line at spaces, in place.
int split(char* line, const char** words) {
  int count = 0;
  for (char* at = line; *at != '\0' && count < static_cast<int>(kMaxWords);) {
    while (*at == ' ') *at++ = '\0';
    if (*at == '\0') break;
    words[count++] = at;
    while (*at != ' ' && *at != '\0') ++at;
  }
  return count;
}

}  // namespace

extern "C" {
/// Counts the processor's cycles, down (Armv7-M and Armv8-M Architecture Reference Manuals,
/// "SysTick").
struct SysTick {
  uint32_t control, reload, current;
};
}

namespace {

volatile SysTick& systick = *reinterpret_cast<volatile SysTick*>(0xE000E010);
constexpr uint32_t kMostCycles = 0xFFFFFF;
enum : uint32_t { kEnable = 1, kInterrupt = 2, kProcessorClock = 4 };
volatile uint32_t wraps;

}  // namespace

extern "C" {
void count_wrap() { wraps = wraps + 1; }

/// Cycles since the first call.
uint64_t etx_pal_current_ticks(void) {
  if ((systick.control & kEnable) == 0) {
    systick.reload = kMostCycles;
    systick.current = 0;
    systick.control = kEnable | kInterrupt | kProcessorClock;
  }
  uint32_t before, left;
  do {
    before = wraps;
    left = systick.current;
  } while (before != wraps);
  return (uint64_t{before} << 24) + (kMostCycles - left);
}
}

int main() {
  static char line[1024];
  uint32_t block[] = {address(line), sizeof(line)};
  static const char* words[kMaxWords];
  const int count = call(SYS_GET_CMDLINE, block) == 0 ? split(line, words) : 0;
  static Board board;
  const int first = count == 0 ? 0 : 1;
  return etx_run::run(count - first, words + first, board, etx_run::kernels());
}

extern "C" {
[[noreturn]] void exit_program(int code) {
  const uint32_t block[] = {0x20026, static_cast<uint32_t>(code)};
  call(SYS_EXIT_EXTENDED, block);
  while (true) {
  }
}

[[noreturn]] void report_fault(const uint32_t* frame) {
  etx_run::Text line;
  line << "etx-run: the processor faulted at address " << static_cast<int64_t>(frame[6])
       << ", called from " << static_cast<int64_t>(frame[5]) << "\n";
  call(SYS_WRITE0, line.c_str());
  exit_program(139);
}
}
