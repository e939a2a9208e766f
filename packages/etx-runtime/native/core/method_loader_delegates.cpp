// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "method_loader.h"

namespace etx {
namespace {

/// The runtime's side of etx_init_context.
struct InitContext : etx_init_context {
  const Program* program;
  MethodState* state;
  const char* reason;
};

void* allocate(etx_init_context* self, size_t size, size_t alignment) {
  auto* context = static_cast<InitContext*>(self);
  return context->state->memory->method_allocator()->allocate(size, alignment);
}

etx_status named_data(etx_init_context* self, const char* key, const void** data, size_t* size) {
  auto* context = static_cast<InitContext*>(self);
  MethodState* state = context->state;
  const NamedDataMap* map = state->data;
  auto stored = context->program->load_named_data(key);
  if (!stored.ok()) {
    if (stored.error() != Error::NotFound || map == nullptr) {
      return static_cast<etx_status>(stored.error());
    }
    auto bytes = map->get_data(key);
    if (!bytes.ok()) return static_cast<etx_status>(bytes.error());
    *data = bytes->data();
    *size = bytes->size();
    return 0;
  }
  auto* kept = state->memory->method_allocator()->allocate_list<KeptData>(1);
  if (kept == nullptr) return static_cast<etx_status>(Error::MemoryAllocationFailed);
  state->kept = ::new (kept) KeptData{state->kept, std::move(stored.get())};
  *data = kept->data.data();
  *size = kept->data.size();
  return 0;
}

void run_init_parallel(etx_init_context* self, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void*, int64_t, int64_t), void* user) {
  Parallel* parallel = static_cast<InitContext*>(self)->state->parallel;
  parallel->parallel_for(begin, end, grain, body, user);
}

etx_status record(etx_init_context* self, etx_status status, const char* reason) {
  static_cast<InitContext*>(self)->reason = reason;
  return status;
}

}  // namespace

Error MethodLoader::find_blob(const fbs::BackendDelegate& stored, FreeableBuffer* blob) {
  const fbs::BackendDelegateDataReference& reference = *stored.processed();
  if (reference.location() == fbs::DataLocation::SEGMENT) {
    return program_.load_segment(reference.index(), DataLoader::SegmentInfo::Type::Backend,
                                 text(stored.id()), blob);
  }
  const auto* data = at(root().backend_delegate_data(), reference.index()).data();
  if (data != nullptr) *blob = FreeableBuffer(data->data(), data->size(), nullptr);
  return Error::Ok;
}

Error detail::init_delegates(MethodLoader& loader) { return loader.init_delegates(); }

Error MethodLoader::init_delegates() {
  for (uint32_t i = 0; i < length(plan_.delegates()); ++i) {
    const fbs::BackendDelegate& stored = at(plan_.delegates(), i);
    const size_t count = length(stored.compile_specs());
    ETX_TRY(init_delegate(stored, {specs_, count}));
    specs_ += count;
  }
  return Error::Ok;
}

Error MethodLoader::init_delegate(const fbs::BackendDelegate& stored,
                                  Span<etx_compile_spec> specs) {
  failure_.name = text(stored.id());
  const etx_backend* backend = request_.registry->find_backend(failure_.name);
  if (backend == nullptr) return fail(Error::NotFound, "no backend of this name");
  if (backend->is_available != nullptr && !backend->is_available(backend)) {
    return fail(Error::NotFound, "backend not available");
  }
  for (uint32_t i = 0; i < specs.size(); ++i) {
    const fbs::CompileSpec& spec = at(stored.compile_specs(), i);
    specs[i] = {text(spec.key()), spec.value() == nullptr ? nullptr : spec.value()->data(),
                length(spec.value())};
  }
  FreeableBuffer blob;
  const Error error = find_blob(stored, &blob);
  if (error != Error::Ok) return fail(error, "the delegate's blob cannot be read");
  InitContext context;
  context.struct_size = sizeof(etx_init_context);
  context.method = text(plan_.name());
  context.allocate = allocate;
  context.named_data = named_data;
  context.fail = record;
  context.num_threads = state_->parallel == nullptr ? 1 : state_->parallel->num_threads();
  context.parallel_for = state_->parallel == nullptr ? nullptr : run_init_parallel;
  Span<const etx_option> options;
  if (request_.backend_options != nullptr) {
    options = request_.backend_options->get_options(failure_.name);
  }
  context.options = options.data();
  context.num_options = options.size();
  context.is_traced = request_.is_traced;
  context.program = &program_;
  context.state = state_;
  context.reason = nullptr;
  void* handle = nullptr;
  const etx_status status = backend->init(backend, &context, blob.data(), blob.size(), specs.data(),
                                          specs.size(), &handle);
  if (status != 0) {
    return fail(static_cast<Error>(status),
                context.reason == nullptr ? "the backend refused its blob" : context.reason);
  }
  Delegate* delegate = state_->delegates.data() + state_->delegates.size();
  ::new (delegate) Delegate{backend, handle, std::move(blob)};
  state_->delegates = Span<Delegate>(state_->delegates.data(), state_->delegates.size() + 1);
  return Error::Ok;
}

}  // namespace etx
