// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_HOSTED_C_API_H_
#define ETX_NATIVE_HOSTED_C_API_H_

#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>

#include <etx/etx.h>
#include <etx/hosted/module.h>

struct etx_program {
  std::shared_ptr<etx::LoadedProgram> loaded;
};

struct etx_method {
  std::unique_ptr<etx::LoadedMethod> loaded;
};

namespace etx {
namespace c_api {

/// Keeps the text for etx_last_error; returns the number.
etx_status fail(Error error, const char* message) noexcept;
inline etx_status fail(const ErrorText& text) noexcept {
  return fail(text.error, text.message.c_str());
}

/// An argument that must not be null.
struct Required {
  const void* pointer;
  const char* name;
};

/// Runs a body that returns an etx_status and may throw, unless a required argument is null.
template <typename Body>
etx_status guard(std::initializer_list<Required> arguments, const Body& body) noexcept {
  try {
    for (const Required& argument : arguments) {
      if (argument.pointer != nullptr) continue;
      const std::string text = std::string("the argument '") + argument.name + "' is null";
      return fail(Error::InvalidArgument, text.c_str());
    }
    return body();
  } catch (const std::bad_alloc&) {
    return fail(Error::MemoryAllocationFailed, "not enough memory");
  } catch (const std::exception& error) {
    return fail(Error::Internal, error.what());
  } catch (...) {
    return fail(Error::Internal, "something unknown was thrown");
  }
}

/// Copies as much of `filled` as the caller knows of.
template <typename T>
etx_status fill(T* target, T& filled) {
  const size_t size = target->struct_size;
  if (size < sizeof(size_t) + sizeof(uint32_t)) {
    return fail(Error::InvalidArgument, "struct_size must be set to the size of the struct");
  }
  const size_t known = size < sizeof(T) ? size : sizeof(T);
  filled.struct_size = known;
  std::memcpy(target, &filled, known);
  return ETX_OK;
}

}  // namespace c_api
}  // namespace etx

#endif  // ETX_NATIVE_HOSTED_C_API_H_
