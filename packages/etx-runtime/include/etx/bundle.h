// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_BUNDLE_H_
#define ETX_BUNDLE_H_

#include <cstddef>
#include <cstdint>

#include <etx/compare.h>
#include <etx/failure.h>
#include <etx/method.h>
#include <etx/result.h>
#include <etx/span.h>

namespace etx {

/// The test cases of a bundled program (`.bpte`): inputs of a method, and what it should return.
///
/// A view of the bytes of the file, read in place without memory of its own:
///
///     Result<Bundle> bundle = Bundle::open(file);       // bundle->program() is a whole .pte
///     for each suite and case, with the method of that name:
///       method.reset_state(); bundle->set_inputs(suite, index, method); method.execute();
///       for each output: bundle->compare(suite, index, output, method.get_output(output));
class Bundle {
 public:
  /// True when bytes begin as a bundled program does.
  static bool has_identifier(const void* data, size_t size);

  /// Checks every offset, type, size and layout in the file but those of its program, which
  /// `Program::load` checks. `file` must be aligned to 16, and outlive the bundle and the inputs of
  /// methods. Errors: InvalidProgram, InvalidArgument (the file is not aligned).
  static Result<Bundle> open(Span<const uint8_t> file, FailureSink* failures = nullptr);

  Span<const uint8_t> program() const;

  size_t num_suites() const;
  /// Below, `suite` must be less than num_suites() and `index` than its number of cases.
  const char* method_name(size_t suite) const;
  size_t num_cases(size_t suite) const;
  /// Outputs that a case has expected values of: all, or none when it is only to be run.
  size_t num_expected(size_t suite, size_t index) const;

  /// Sets all inputs. Errors: InvalidArgument (their number), and those of Method::set_input.
  Error set_inputs(size_t suite, size_t index, Method& method) const;

  /// Compares an output, which must be less than num_expected(), with the expected one.
  Verdict compare(size_t suite, size_t index, size_t output, const EValue& value,
                  Tolerance tolerance = {}) const;

 private:
  explicit Bundle(const void* root) : root_(root) {}
  const void* case_at(size_t suite, size_t index) const;

  const void* root_;
};

}  // namespace etx

#endif  // ETX_BUNDLE_H_
