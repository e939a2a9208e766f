// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_BOARD_SEMIHOSTING_H_
#define ETX_BOARD_SEMIHOSTING_H_

#include <cstdint>

/// Text and the exit code of a board, by Arm's semihosting: a debugger or an emulator takes them.
/// A product replaces these functions by its own.
namespace etx_board {

inline uint32_t call(uint32_t operation, const void* argument) {
  register uint32_t r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

inline void print(const char* text) { call(0x04, text); }

inline void print_hex(uint32_t number) {
  char text[11] = "0x";
  for (int i = 0; i < 8; ++i) text[2 + i] = "0123456789abcdef"[number >> (28 - 4 * i) & 15];
  text[10] = '\0';
  print(text);
}

inline void print_number(int32_t number) {
  char text[12];
  char* at = text + sizeof(text) - 1;
  *at = '\0';
  uint32_t rest = number < 0 ? 0u - static_cast<uint32_t>(number) : static_cast<uint32_t>(number);
  do {
    *--at = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (number < 0) *--at = '-';
  print(at);
}

/// Reads the debugger's file of this name; false where it is not of this size.
inline bool read_file(const char* name, uint8_t* begin, const uint8_t* end) {
  const auto word = [](const void* at) { return reinterpret_cast<uint32_t>(at); };
  uint32_t length = 0;
  while (name[length] != '\0') ++length;
  const uint32_t open[] = {word(name), 1, length};
  const uint32_t handle = call(0x01, open);
  if (handle == 0xFFFFFFFFu) return false;
  const auto size = static_cast<uint32_t>(end - begin);
  const bool has_size = call(0x0C, &handle) == size;
  const uint32_t block[] = {handle, word(begin), size};
  const bool is_read = has_size && call(0x06, block) == 0;
  call(0x02, &handle);
  return is_read;
}

constexpr uint32_t kPaint = 0xA5A5A5A5;

/// Marks what lies below the caller's frame, for used_stack.
inline void paint_stack(uint32_t* bottom) {
  const auto* const here = static_cast<const uint32_t*>(__builtin_frame_address(0));
  for (uint32_t* at = bottom; at + 16 < here; ++at) *const_cast<volatile uint32_t*>(at) = kPaint;
}

/// Bytes of the stack that were written since paint_stack.
inline uint32_t used_stack(const uint32_t* bottom, const uint32_t* top) {
  while (bottom != top && *bottom == kPaint) ++bottom;
  return static_cast<uint32_t>(top - bottom) * 4;
}

[[noreturn]] inline void leave(int code) {
  const uint32_t block[] = {0x20026, static_cast<uint32_t>(code)};
  while (true) call(0x20, block);
}

}  // namespace etx_board

#endif  // ETX_BOARD_SEMIHOSTING_H_
