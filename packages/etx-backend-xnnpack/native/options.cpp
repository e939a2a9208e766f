// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace etx::xnnpack {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;

bool is_word(const void* text, size_t size, const char* word) {
  return size == std::strlen(word) && std::memcmp(text, word, size) == 0;
}

/// Null where the environment has nothing for `name`.
const char* given(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

Error read_sharing(const void* text, size_t size, Sharing* sharing) {
  if (is_word(text, size, "delegate")) {
    *sharing = Sharing::Delegate;
  } else if (is_word(text, size, "method")) {
    *sharing = Sharing::Method;
  } else if (is_word(text, size, "process")) {
    *sharing = Sharing::Process;
  } else {
    return fail(Error::InvalidArgument,
                "workspace is '%.*s', expected 'delegate', 'method' or 'process'",
                static_cast<int>(size < 40 ? size : 40), static_cast<const char*>(text));
  }
  return Error::Ok;
}

Error find_sharing(const etx_compile_spec* specs, size_t num_specs, Sharing* sharing) {
  const char* text = given("ETX_XNNPACK_WORKSPACE");
  if (text != nullptr) return read_sharing(text, std::strlen(text), sharing);
  for (size_t i = 0; i < num_specs; ++i) {
    if (std::strcmp(specs[i].key, "workspace") == 0) {
      return read_sharing(specs[i].value, specs[i].size, sharing);
    }
  }
  return Error::Ok;
}

Error read_weight_cache(Options* options) {
  options->weight_cache = given("ETX_XNNPACK_WEIGHT_CACHE");
  const char* limit = given("ETX_XNNPACK_WEIGHT_CACHE_LIMIT");
  if (limit != nullptr) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long megabytes = std::strtoull(limit, &end, 10);
    if (*limit < '0' || *limit > '9' || *end != '\0' || errno != 0 ||
        megabytes > UINT64_MAX / kMegabyte) {
      return fail(Error::InvalidArgument,
                  "ETX_XNNPACK_WEIGHT_CACHE_LIMIT is '%.40s', expected a number of megabytes",
                  limit);
    }
    options->weight_cache_limit = megabytes * kMegabyte;
  }
  const char* verify = given("ETX_XNNPACK_WEIGHT_CACHE_VERIFY");
  if (verify == nullptr) return Error::Ok;
  options->must_verify_weights = std::strcmp(verify, "1") == 0;
  if (options->must_verify_weights || std::strcmp(verify, "0") == 0) return Error::Ok;
  return fail(Error::InvalidArgument, "ETX_XNNPACK_WEIGHT_CACHE_VERIFY is '%.40s', expected 0 or 1",
              verify);
}

}  // namespace

Error read_options(const etx_compile_spec* specs, size_t num_specs, Options* options) {
  ETX_TRY(find_sharing(specs, num_specs, &options->sharing));
  return read_weight_cache(options);
}

}  // namespace etx::xnnpack
