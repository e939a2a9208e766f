// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_FUZZ_RESERVED_H_
#define ETX_TESTS_FUZZ_RESERVED_H_

#include <cstddef>
#include <functional>

namespace etx::fuzz {

/// Memory of zeros that becomes real where it is touched, with as much address space before and
/// behind it that must not be touched. For blocks of gigabytes that a run touches little of.
class Reserved {
 public:
  /// Null data when there is no address space left. Aligned to 16; the end, rounded up to 16, is
  /// the end of a page.
  explicit Reserved(size_t size);
  ~Reserved();
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// Runs `work`; true when it came to its end. It is left, as by longjmp, once it has touched more
/// of reserved memory than a run may. A touch of what surrounds reserved memory ends the process.
bool run_within_budget(const std::function<void()>& work);

}  // namespace etx::fuzz

#endif  // ETX_TESTS_FUZZ_RESERVED_H_
