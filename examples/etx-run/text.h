// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_EXAMPLES_TEXT_H_
#define ETX_EXAMPLES_TEXT_H_

#include <etx/error.h>

#include <cstddef>
#include <cstdint>

namespace etx_run {

/// A line of text in a fixed buffer; what does not fit is cut.
class Text {
 public:
  Text& operator<<(const char* text) {
    while (*text != '\0' && used_ + 1 < sizeof(text_)) text_[used_++] = *text++;
    text_[used_] = '\0';
    return *this;
  }
  Text& operator<<(int64_t number) {
    char digits[21];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    uint64_t rest = static_cast<uint64_t>(number);
    if (number < 0) rest = 0 - rest;
    do {
      digits[--at] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (number < 0) digits[--at] = '-';
    return *this << digits + at;
  }
  /// `NotFound (0x20)`.
  Text& operator<<(etx::Error error) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const auto code = static_cast<uint32_t>(error);
    const char digits[] = {kDigits[code / 16 % 16], kDigits[code % 16], '\0'};
    return *this << etx::to_string(error) << " (0x" << digits << ")";
  }
  const char* c_str() const { return text_; }

 private:
  char text_[256] = "";
  size_t used_ = 0;
};

inline bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

/// Reads a number below 2^31; returns the first character after it, or null.
inline const char* read_number(const char* text, int32_t& number) {
  int64_t value = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; ++at) {
    value = value * 10 + (*at - '0');
    if (value > INT32_MAX) return nullptr;
  }
  number = static_cast<int32_t>(value);
  return at == text ? nullptr : at;
}

}  // namespace etx_run

#endif  // ETX_EXAMPLES_TEXT_H_
