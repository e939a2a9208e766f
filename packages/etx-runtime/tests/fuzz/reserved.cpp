// SPDX-License-Identifier: BSD-3-Clause
#include "reserved.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace etx::fuzz {
namespace {

constexpr size_t kMostBlocks = 64;
constexpr size_t kPiece = size_t{1} << 16;
constexpr size_t kMostPieces = 128;
/// A stray offset of a few gigabytes must not reach another block.
constexpr size_t kGuard = size_t{1} << 36;

struct Block {
  uintptr_t map;
  uintptr_t begin;
  uintptr_t end;
};

Block blocks[kMostBlocks];
size_t pieces = 0;
bool is_bounded = false;
sigjmp_buf over_budget;
struct sigaction former[2];

void touch(int signal, siginfo_t* info, void* user) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Block& block : blocks) {
    if (address < block.begin || address >= block.end) continue;
    if (is_bounded && ++pieces > kMostPieces) siglongjmp(over_budget, 1);
    const uintptr_t at = address - (address - block.begin) % kPiece;
    const size_t size = block.end - at < kPiece ? block.end - at : kPiece;
    if (mprotect(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE) != 0) std::abort();
    return;
  }
  const struct sigaction& next = former[signal == SIGBUS];
  if ((next.sa_flags & SA_SIGINFO) != 0) return next.sa_sigaction(signal, info, user);
  std::signal(signal, SIG_DFL);
}

void install() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = touch;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGSEGV, &action, &former[0]) == 0 &&
           sigaction(SIGBUS, &action, &former[1]) == 0;
  }();
  if (!installed) std::abort();
}

}  // namespace

Reserved::Reserved(size_t size) {
  install();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = (size + page - 1) / page * page;
  for (Block& block : blocks) {
    if (block.map != 0) continue;
    void* map = mmap(nullptr, whole + 2 * kGuard, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return;
    block.map = reinterpret_cast<uintptr_t>(map);
    block.begin = block.map + kGuard;
    block.end = block.begin + whole;
    data_ = reinterpret_cast<void*>(block.end - (size + 15) / 16 * 16);
    return;
  }
}

Reserved::~Reserved() {
  for (Block& block : blocks) {
    const auto address = reinterpret_cast<uintptr_t>(data_);
    if (address < block.begin || address >= block.end) continue;
    munmap(reinterpret_cast<void*>(block.map), block.end - block.map + kGuard);
    block = Block();
  }
}

bool run_within_budget(const std::function<void()>& work) {
  install();
  pieces = 0;
  is_bounded = true;
  const bool ended = sigsetjmp(over_budget, 1) == 0;
  if (ended) work();
  is_bounded = false;
  return ended;
}

}  // namespace etx::fuzz
