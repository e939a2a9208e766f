// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/log.h>

#include "c_api.h"

using etx::Error;
using etx::ErrorText;
using etx::LoadedProgram;
using etx::c_api::fail;
using etx::c_api::fill;
using etx::c_api::guard;

namespace etx {
namespace c_api {
namespace {

thread_local std::string last_error;

/// What is wrong with the options, or null.
const char* read_options(const etx_load_options* given, LoadedProgram::Options* options) {
  if (given == nullptr) return nullptr;
  if (given->struct_size < sizeof(etx_load_options)) {
    return "struct_size of the options is too small";
  }
  options->verification =
      given->verify != 0 ? Program::Verification::Full : Program::Verification::Minimal;
  options->use_mmap = given->use_mmap != 0;
  for (size_t i = 0; i < given->num_data_paths; ++i) {
    if (given->data_paths == nullptr || given->data_paths[i] == nullptr) {
      return "one of the data_paths is null";
    }
    options->data_paths.emplace_back(given->data_paths[i]);
  }
  return nullptr;
}

template <typename Load>
etx_status load(const etx_load_options* given, etx_program** program, Required source,
                const Load& from) {
  return guard({source, {program, "program"}}, [&]() -> etx_status {
    LoadedProgram::Options options;
    const char* reason = read_options(given, &options);
    if (reason != nullptr) return fail(Error::InvalidArgument, reason);
    ErrorText error;
    auto handle = std::make_unique<etx_program>();
    handle->loaded = from(options, &error);
    if (handle->loaded == nullptr) return fail(error);
    *program = handle.release();
    return ETX_OK;
  });
}

/// Calls `use(meta)` with what the file says of a method.
template <typename Use>
etx_status with_meta(const etx_program* program, const char* method, const Use& use) {
  return guard({{program, "program"}, {method, "method"}}, [&]() -> etx_status {
    const auto meta = program->loaded->program().method_meta(method);
    if (meta.ok()) return use(*meta);
    const std::string text = "the program has no method '" + std::string(method) + "'";
    return fail(Error::NotFound, text.c_str());
  });
}

etx_status describe(Result<Tag> tag, Result<TensorInfo> tensor, etx_value_info* info) {
  if (info == nullptr) return fail(Error::InvalidArgument, "the argument 'info' is null");
  if (!tag.ok()) return fail(Error::InvalidArgument, "there is no such index");
  etx_value_info filled{};
  filled.tag = static_cast<uint32_t>(*tag);
  filled.name = "";
  if (tensor.ok()) {
    filled.dtype = static_cast<int32_t>(tensor->scalar_type());
    filled.rank = static_cast<uint32_t>(tensor->sizes().size());
    filled.is_dynamic = tensor->shape_dynamism() != TensorShapeDynamism::Static;
    filled.is_planned = tensor->is_memory_planned();
    filled.sizes = tensor->sizes().data();
    filled.dim_order = tensor->dim_order().data();
    filled.nbytes = tensor->nbytes();
    if (!tensor->name().empty()) filled.name = tensor->name().data();
  }
  return fill(info, filled);
}

}  // namespace

etx_status fail(Error error, const char* message) noexcept {
  try {
    last_error = message;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return static_cast<etx_status>(error);
}

}  // namespace c_api
}  // namespace etx

uint32_t etx_api_version(void) { return ETX_API_MAJOR * 65536 + ETX_API_MINOR; }

const char* etx_status_name(etx_status status) {
  return etx::to_string(static_cast<Error>(status));
}

const char* etx_last_error(void) { return etx::c_api::last_error.c_str(); }

etx_status etx_program_load_file(const char* path, const etx_load_options* options,
                                 etx_program** program) {
  const auto from = [&](const auto& chosen, ErrorText* error) {
    return LoadedProgram::from_file(path, chosen, error);
  };
  return etx::c_api::load(options, program, {path, "path"}, from);
}

etx_status etx_program_load_memory(const void* data, size_t size,
                                   void (*release)(void* context, const void* data), void* context,
                                   const etx_load_options* options, etx_program** program) {
  return guard({}, [&] {
    std::shared_ptr<void> owner;
    if (release != nullptr) {
      owner = std::shared_ptr<void>(const_cast<void*>(data),
                                    [=](void* bytes) { release(context, bytes); });
    }
    const auto from = [&](const auto& chosen, ErrorText* error) {
      return LoadedProgram::from_memory(data, size, std::move(owner), chosen, error);
    };
    return etx::c_api::load(options, program, {data, "data"}, from);
  });
}

etx_status etx_program_load_fd(int descriptor, uint64_t offset, uint64_t size,
                               const etx_load_options* options, etx_program** program) {
  const auto from = [&](const auto& chosen, ErrorText* error) {
    return LoadedProgram::from_descriptor(descriptor, offset, size, chosen, error);
  };
  return etx::c_api::load(options, program, {"", "descriptor"}, from);
}

void etx_program_free(etx_program* program) { delete program; }

size_t etx_program_num_methods(const etx_program* program) {
  return program == nullptr ? 0 : program->loaded->program().num_methods();
}

const char* etx_program_method_name(const etx_program* program, size_t index) {
  if (program == nullptr) return nullptr;
  const auto name = program->loaded->program().get_method_name(index);
  return name.ok() ? *name : nullptr;
}

etx_status etx_program_named_data(const etx_program* program, const char* key, void* data,
                                  size_t* size) {
  return guard({{program, "program"}, {key, "key"}, {size, "size"}}, [&]() -> etx_status {
    const auto found = program->loaded->program().load_named_data(key);
    if (!found.ok()) {
      const bool exists = found.error() != Error::NotFound;
      const std::string text = (exists ? "the file cannot be read for data under '"
                                       : "the program has no data under '") +
                               std::string(key) + "'";
      return fail(found.error(), text.c_str());
    }
    const size_t room = *size;
    *size = found->size();
    if (data == nullptr && room == 0) return ETX_OK;
    if (data == nullptr) return fail(Error::InvalidArgument, "the argument 'data' is null");
    if (room < found->size()) {
      const std::string text = "expected room for " + std::to_string(found->size()) +
                               " bytes, got " + std::to_string(room);
      return fail(Error::InvalidArgument, text.c_str());
    }
    if (found->size() != 0) std::memcpy(data, found->data(), found->size());
    return ETX_OK;
  });
}

etx_status etx_program_method_counts(const etx_program* program, const char* method,
                                     size_t* num_inputs, size_t* num_outputs, size_t* num_buffers) {
  return etx::c_api::with_meta(program, method, [&](const etx::MethodMeta& meta) -> etx_status {
    if (num_inputs != nullptr) *num_inputs = meta.num_inputs();
    if (num_outputs != nullptr) *num_outputs = meta.num_outputs();
    if (num_buffers != nullptr) *num_buffers = meta.num_attributes();
    return ETX_OK;
  });
}

etx_status etx_program_input_info(const etx_program* program, const char* method, size_t index,
                                  etx_value_info* info) {
  return etx::c_api::with_meta(program, method, [&](const etx::MethodMeta& meta) {
    return etx::c_api::describe(meta.input_tag(index), meta.input_tensor_meta(index), info);
  });
}

etx_status etx_program_output_info(const etx_program* program, const char* method, size_t index,
                                   etx_value_info* info) {
  return etx::c_api::with_meta(program, method, [&](const etx::MethodMeta& meta) {
    return etx::c_api::describe(meta.output_tag(index), meta.output_tensor_meta(index), info);
  });
}

etx_status etx_program_buffer_info(const etx_program* program, const char* method, size_t index,
                                   etx_value_info* info) {
  return etx::c_api::with_meta(program, method, [&](const etx::MethodMeta& meta) {
    const bool exists = index < meta.num_attributes();
    etx::Result<etx::Tag> tag = Error::InvalidArgument;
    if (!exists) return etx::c_api::describe(std::move(tag), Error::InvalidArgument, info);
    return etx::c_api::describe(etx::Tag::Tensor, meta.attribute_tensor_meta(index), info);
  });
}

etx_status etx_program_required_bytes(const etx_program* program, const char* method,
                                      size_t* method_bytes, size_t* arena_bytes,
                                      size_t* num_arenas) {
  return etx::c_api::with_meta(program, method, [&](const etx::MethodMeta& meta) -> etx_status {
    if (method_bytes == nullptr || num_arenas == nullptr ||
        (arena_bytes == nullptr && *num_arenas != 0)) {
      return fail(Error::InvalidArgument, "an argument for the results is null");
    }
    *method_bytes = meta.required_bytes();
    const size_t count = meta.num_memory_planned_buffers();
    for (size_t i = 0; i < count && i < *num_arenas; ++i) {
      arena_bytes[i] = *meta.memory_planned_buffer_size(i);
    }
    *num_arenas = count;
    return ETX_OK;
  });
}

etx_status etx_load_plugin(const char* path) {
  return guard({{path, "path"}}, [&]() -> etx_status {
    std::string message;
    if (etx::Plugins::shared().load(path, &message) != nullptr) return ETX_OK;
    return fail(Error::NotFound, message.c_str());
  });
}

etx_status etx_add_plugin(const etx_plugin* plugin) {
  return guard({{plugin, "plugin"}}, [&]() -> etx_status {
    std::string message;
    if (etx::Plugins::shared().add(plugin, &message)) return ETX_OK;
    return fail(Error::NotSupported, message.c_str());
  });
}

void etx_set_num_threads(uint32_t num_threads) {
  guard({}, [&]() -> etx_status {
    etx::ThreadPool::shared().resize(num_threads);
    return ETX_OK;
  });
}

uint32_t etx_num_threads(void) {
  uint32_t count = 1;
  guard({}, [&]() -> etx_status {
    count = etx::ThreadPool::shared().num_threads();
    return ETX_OK;
  });
  return count;
}

void etx_set_log_level(enum etx_log_level minimum) { etx::set_log_level(minimum); }

etx_status etx_set_log_sink(void (*sink)(void* user, enum etx_log_level level, const char* message),
                            void* user) {
  return guard({}, [&]() -> etx_status {
    const Error error = etx::set_log_sink(sink, user);
    if (error == Error::Ok) return ETX_OK;
    return fail(error, "a log sink must not replace itself while it is called");
  });
}
