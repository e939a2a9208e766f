// SPDX-License-Identifier: BSD-3-Clause
#include "failure.h"

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>

#include <c10/util/Exception.h>

namespace etx::aten {
namespace {

constexpr size_t kTexts = 256;
constexpr size_t kLongest = 1024;
using Text = std::array<char, kLongest>;

const char* keep(const std::string& text) {
  static std::array<Text, kTexts>* const texts = new (std::nothrow) std::array<Text, kTexts>();
  static std::atomic<size_t> next{0};
  if (texts == nullptr) return "torch raised an exception, and there is no memory for its text";
  Text& kept = (*texts)[next.fetch_add(1, std::memory_order_relaxed) % kTexts];
  const size_t size = std::min(text.size(), kLongest - 1);
  std::memcpy(kept.data(), text.data(), size);
  kept[size] = '\0';
  return kept.data();
}

/// One line, without the blanks at its ends.
std::string folded(const std::string& text) {
  std::string line;
  bool is_blank = true;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_space) line += c;
    if (is_space && !is_blank) line += ' ';
    is_blank = is_space;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

/// The text of a Python exception with the innermost of the frames that pybind11 lists.
std::string without_outer_frames(const std::string& text) {
  constexpr char kFrames[] = "\n\nAt:\n";
  const size_t frames = text.find(kFrames);
  if (frames == std::string::npos) return text;
  return text.substr(0, text.find('\n', frames + sizeof(kFrames) - 1));
}

bool is_out_of_memory(const std::string& text) {
  return text.find("DefaultCPUAllocator") != std::string::npos ||
         text.find("can't allocate memory") != std::string::npos;
}

etx_status fail_with_text(etx_context* context, Error error, const std::string& text) {
  if (text.find("resize storage that is not resizable") != std::string::npos) {
    return fail(context, error,
                "the result has other sizes than the program has room for (" + text +
                    "); export it with larger bounds");
  }
  return fail(context, is_out_of_memory(text) ? Error::MemoryAllocationFailed : error, text);
}

}  // namespace

etx_status fail(etx_context* context, Error error, const std::string& text) {
  return context->fail(context, static_cast<etx_status>(error), keep(folded(text)));
}

etx_status fail_with_exception(etx_context* context) {
  constexpr char kNoMemory[] = "torch ran out of memory";
  try {
    throw;
  } catch (const c10::NotImplementedError& error) {  // torch's: no kernel of it for the CPU
    return fail(context, Error::NotImplemented, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return fail_with_text(context, Error::InvalidArgument, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return context->fail(context, static_cast<etx_status>(Error::MemoryAllocationFailed),
                         kNoMemory);
  } catch (const std::exception& error) {
    return fail_with_text(context, Error::Internal, without_outer_frames(error.what()));
  } catch (...) {
    return context->fail(context, static_cast<etx_status>(Error::Internal),
                         "the operator threw what is not a std::exception");
  }
}

}  // namespace etx::aten
