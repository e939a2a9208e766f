// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <cerrno>
#include <cstdio>
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

/// A value as a person reads it, in `text`.
const char* describe(const etx_value& value, char (&text)[64]) {
  switch (value.tag) {
    case ETX_TAG_BOOL: return value.payload.as_bool ? "True" : "False";
    case ETX_TAG_INT:
      std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(value.payload.as_int));
      return text;
    case ETX_TAG_STRING:
      std::snprintf(text, sizeof(text), "'%.48s'", value.payload.as_string);
      return text;
    default: return "of an unknown type";
  }
}

Error refuse(const etx_option& option, const char* expected) {
  char text[64];
  return fail(Error::InvalidArgument, "option '%.64s' is %s, expected %s", option.key,
              describe(option.value, text), expected);
}

Error read_mode(const etx_option& option, Options* options) {
  constexpr char kExpected[] = "0 or 'delegate', 1 or 'method', 2 or 'process'";
  const etx_value& value = option.value;
  if (value.tag == ETX_TAG_STRING &&
      read_sharing(value.payload.as_string, value.count, &options->sharing) == Error::Ok) {
    return Error::Ok;
  }
  const bool is_mode =
      value.tag == ETX_TAG_INT && value.payload.as_int >= 0 && value.payload.as_int <= 2;
  if (!is_mode) return refuse(option, kExpected);
  constexpr Sharing kModes[] = {Sharing::Delegate, Sharing::Method, Sharing::Process};
  options->sharing = kModes[value.payload.as_int];
  return Error::Ok;
}

Error read_folder(const etx_option& option, Options* options) {
  if (option.value.tag != ETX_TAG_STRING || option.value.count == 0) {
    return refuse(option, "the path of a folder");
  }
  options->weight_cache = option.value.payload.as_string;
  return Error::Ok;
}

Error read_limit(const etx_option& option, Options* options) {
  const etx_value& value = option.value;
  if (value.tag != ETX_TAG_INT || value.payload.as_int < 0 ||
      static_cast<uint64_t>(value.payload.as_int) > UINT64_MAX / kMegabyte) {
    return refuse(option, "a number of megabytes");
  }
  options->weight_cache_limit = static_cast<uint64_t>(value.payload.as_int) * kMegabyte;
  return Error::Ok;
}

Error read_verify(const etx_option& option, Options* options) {
  if (option.value.tag != ETX_TAG_BOOL) return refuse(option, "a bool");
  options->must_verify_weights = option.value.payload.as_bool;
  return Error::Ok;
}

Error read_enabled(const etx_option& option, Options* options) {
  if (option.value.tag != ETX_TAG_BOOL) return refuse(option, "a bool");
  options->keeps_weights = option.value.payload.as_bool;
  return Error::Ok;
}

Error read_panels(const etx_option& option, Options* options) {
  if (option.value.tag != ETX_TAG_BOOL) return refuse(option, "a bool");
  options->has_weight_panels = option.value.payload.as_bool;
  return Error::Ok;
}

struct Key {
  const char* name;
  Error (*read)(const etx_option& option, Options* options);
};
constexpr Key kKeys[] = {
    {"workspace_sharing_mode", read_mode}, {"weight_cache_enabled", read_enabled},
    {"packed_cache_path", read_folder},    {"weight_cache_limit", read_limit},
    {"weight_cache_verify", read_verify},  {"weight_panels", read_panels},
};

Error read_option(const etx_option& option, Options* options) {
  for (const Key& key : kKeys) {
    if (std::strcmp(key.name, option.key) == 0) return key.read(option, options);
  }
  return fail(Error::InvalidArgument,
              "there is no option '%.64s'; expected workspace_sharing_mode, weight_cache_enabled, "
              "packed_cache_path, weight_cache_limit, weight_cache_verify or weight_panels",
              option.key);
}

}  // namespace

Error read_options(const etx_init_context& context, const etx_compile_spec* specs, size_t num_specs,
                   Options* options) {
  ETX_TRY(find_sharing(specs, num_specs, &options->sharing));
  ETX_TRY(read_weight_cache(options));
  for (size_t i = 0; i < context.num_options; ++i) {
    ETX_TRY(read_option(context.options[i], options));
  }
  if (!options->keeps_weights) options->weight_cache = nullptr;
  return Error::Ok;
}

}  // namespace etx::xnnpack
