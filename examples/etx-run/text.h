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
  /// Four digits and the power of ten: `1.250e-07`.
  Text& decimal(double number) {
    if (number != number) return *this << "nan";
    if (number < 0) *this << "-";
    number = number < 0 ? -number : number;
    if (number - number != 0) return *this << "inf";
    int32_t power = 0;
    while (number >= 10) number /= 10, ++power;
    while (number != 0 && number < 1) number *= 10, --power;
    auto digits = static_cast<int32_t>(number * 1000 + 0.5);
    if (digits > 9999) digits /= 10, ++power;
    *this << int64_t{digits / 1000} << ".";
    for (int32_t unit = 100; unit != 0; unit /= 10) *this << int64_t{digits / unit % 10};
    *this << (power < 0 ? "e-" : "e+") << (power > -10 && power < 10 ? "0" : "");
    return *this << int64_t{power < 0 ? -power : power};
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

/// Reads a number such as 0.5 or 1e-3; false when it is none or below 0.
inline bool read_decimal(const char* text, double& number) {
  int32_t power = 0, digits = 0;
  bool has_point = false;
  number = 0;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point); ++text) {
    if (*text == '.') {
      has_point = true;
      continue;
    }
    number = number * 10 + (*text - '0');
    power -= has_point ? 1 : 0;
    ++digits;
  }
  if (digits != 0 && *text == 'e') {
    const bool is_small = *++text == '-';
    int32_t exponent = 0;
    text = read_number(is_small ? text + 1 : text, exponent);
    if (text == nullptr || exponent > 99) return false;
    power += is_small ? -exponent : exponent;
  }
  for (; power < 0; ++power) number /= 10;
  for (; power > 0; --power) number *= 10;
  return digits != 0 && *text == '\0';
}

}  // namespace etx_run

#endif  // ETX_EXAMPLES_TEXT_H_
