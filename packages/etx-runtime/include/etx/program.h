// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PROGRAM_H_
#define ETX_PROGRAM_H_

#include <cstddef>
#include <cstdint>

#include <etx/arena.h>
#include <etx/backend_options.h>
#include <etx/failure.h>
#include <etx/loader.h>
#include <etx/method.h>
#include <etx/method_meta.h>
#include <etx/named_data.h>
#include <etx/platform.h>
#include <etx/registry.h>
#include <etx/result.h>
#include <etx/tracer.h>

namespace etx {

namespace detail {
using FindExternal = Result<Span<const uint8_t>> (*)(const NamedDataMap& data, const void* tensor,
                                                     const char** reason);
/// The external bytes of a tensor of the file, whose layout must be the one of `data`.
Result<Span<const uint8_t>> find_external(const NamedDataMap& data, const void* tensor,
                                          const char** reason);

/// The arguments of Program::load_method but the tracer.
struct LoadRequest {
  const char* name;
  MemoryManager* memory;
  const Registry* registry;
  const NamedDataMap* data;
  /// Null without `data`.
  FindExternal find_external;
  FailureSink* failures;
  Parallel* parallel;
  const LoadBackendOptionsMap* backend_options;
  bool is_traced;
};
}  // namespace detail

/// A program ready for execution: a read-only view of the bytes of its file.
///
/// Immutable, so threads may share it. The loader must outlive the Program, and the Program every
/// Method loaded from it; it must not be moved once there is one.
class Program {
 public:
  /// Minimal trusts the file: for programs that were verified when they were built or installed.
  enum class Verification : uint8_t { Minimal, Full };

  /// Checks header, version and, with Full, every offset, type, size and jump; copies nothing.
  /// Errors: InvalidProgram, NotSupported (of a newer format), and those of the loader.
  static Result<Program> load(const DataLoader* loader,
                              Verification verification = Verification::Full,
                              FailureSink* failures = nullptr);

  Program(Program&&) noexcept = default;
  Program& operator=(Program&&) = delete;

  size_t num_methods() const;
  /// Errors: InvalidArgument.
  Result<const char*> get_method_name(size_t index) const;
  /// Errors: InvalidArgument when there is no such method.
  Result<MethodMeta> method_meta(const char* name) const;

  /// Resolves the kernels and backends of `name` in `registry` and places its tensors in `memory`.
  ///
  /// `memory`, the registry's tables, `tracer`, `data` and `parallel` must outlive the method.
  /// `data` holds the program's external constants; null when it has none. `parallel` has threads
  /// for the delegates' init and for executions; null for none. `backend_options` are what is asked
  /// of backends, which refuse what they do not know; null for nothing.
  /// Errors: InvalidArgument (no such method), OperatorMissing (all of them are reported),
  /// NotFound (backend), MemoryAllocationFailed, InvalidProgram, InvalidExternalData.
  Result<Method> load_method(const char* name, MemoryManager* memory, const Registry& registry,
                             EventTracer* tracer = nullptr, const NamedDataMap* data = nullptr,
                             FailureSink* failures = nullptr, Parallel* parallel = nullptr,
                             const LoadBackendOptionsMap* backend_options = nullptr) const {
    const auto find = data == nullptr ? nullptr : detail::find_external;
    const bool is_traced = tracer != nullptr;
    const uint64_t start = is_traced ? etx_pal_current_ticks() : 0;
    Result<Method> method = load_untraced(
        {name, memory, &registry, data, find, failures, parallel, backend_options, is_traced});
    if (is_traced) {
      tracer->load(name, method.error(), start, etx_pal_current_ticks());
      if (method.ok()) method->set_tracer(tracer);
    }
    return method;
  }

  size_t num_named_data() const;
  /// Errors: InvalidArgument.
  Result<const char*> named_data_key(size_t index) const;
  /// The bytes stored in the program under `key`. Errors: NotFound, and those of the loader.
  Result<FreeableBuffer> load_named_data(const char* key) const;

  /// The two kinds of file: with the program's identifier at byte 4 or without.
  static bool has_identifier(const void* data, size_t size);

 private:
  friend class Method;
  friend class MethodLoader;
  friend class Verifier;

  explicit Program(const DataLoader* loader) : loader_(loader) {}
  Result<Method> load_untraced(const detail::LoadRequest& request) const;
  Error read_program(Verification verification, FailureSink* failures);
  Error load_constants(FailureSink* failures);
  Error read(uint64_t offset, uint64_t size, const DataLoader::SegmentInfo& info,
             FreeableBuffer* bytes) const;
  Error load_segment(size_t index, DataLoader::SegmentInfo::Type type, const char* descriptor,
                     FreeableBuffer* bytes) const;
  const void* find_plan(const char* name) const;

  const DataLoader* loader_;
  FreeableBuffer program_data_;
  FreeableBuffer constants_;
  const void* root_ = nullptr;
  size_t segment_base_ = 0;
};

}  // namespace etx

#endif  // ETX_PROGRAM_H_
