// SPDX-License-Identifier: BSD-3-Clause
#include "c_api.h"

#include "describe.h"

using etx::Error;
using etx::ErrorText;
using etx::EValue;
using etx::c_api::fail;
using etx::c_api::fill;
using etx::c_api::guard;

namespace etx {
namespace c_api {
namespace {

etx_status set_number(etx_method* method, size_t index, const EValue& value) {
  return guard({{method, "method"}}, [&]() -> etx_status {
    ErrorText error;
    if (method->loaded->set_value(index, value, &error)) return ETX_OK;
    return fail(error);
  });
}

etx_status describe(const EValue& value, etx_output* output) {
  etx_output filled{};
  filled.tag = static_cast<uint32_t>(value.tag());
  switch (value.tag()) {
    case Tag::Int: filled.as_int = value.to_int(); break;
    case Tag::Bool: filled.as_int = value.to_bool() ? 1 : 0; break;
    case Tag::Double: filled.as_double = value.to_double(); break;
    case Tag::Tensor: {
      const Tensor tensor = value.to_tensor();
      filled.dtype = static_cast<int32_t>(tensor.scalar_type());
      filled.rank = static_cast<uint32_t>(tensor.dim());
      filled.sizes = tensor.sizes().data();
      filled.strides = tensor.strides().data();
      filled.data = tensor.mutable_data_ptr();
      filled.nbytes = tensor.nbytes();
      break;
    }
    default: break;
  }
  return fill(output, filled);
}

/// What is wrong with the options; empty where nothing is.
std::string read_options(const etx_method_options* given, StoredBackendOptions* stored) {
  if (given == nullptr) return "";
  if (given->struct_size < sizeof(etx_method_options)) {
    return "struct_size of the options is too small";
  }
  if (given->backend_options == nullptr && given->num_backend_options != 0) {
    return "backend_options is null";
  }
  for (size_t i = 0; i < given->num_backend_options; ++i) {
    const etx_backend_option& each = given->backend_options[i];
    const std::string place = "backend_options[" + std::to_string(i) + "]: ";
    if (each.backend == nullptr || each.key == nullptr) return place + "backend or key is null";
    const char* text = each.as_string;
    if (each.tag == ETX_TAG_STRING && text == nullptr) return place + "as_string is null";
    BackendOption option(each.key, each.as_int);
    if (each.tag == ETX_TAG_BOOL) {
      option = BackendOption(each.key, each.as_int != 0);
    } else if (each.tag == ETX_TAG_STRING) {
      option = BackendOption(each.key, text);
    } else if (each.tag != ETX_TAG_INT) {
      return place + "tag is " + std::to_string(each.tag) +
             ", expected ETX_TAG_BOOL, ETX_TAG_INT or ETX_TAG_STRING";
    }
    if (!stored->add(each.backend, option)) {
      return place + "options of more than " + std::to_string(LoadBackendOptionsMap::kMaxBackends) +
             " backends";
    }
  }
  return "";
}

/// Calls `use(tensor)` with a mutable buffer; `argument` is what the caller gives or takes.
template <typename Use>
etx_status with_buffer(const etx_method* method, const char* name, Required argument,
                       const Use& use) {
  return guard({{method, "method"}, {name, "name"}, argument}, [&]() -> etx_status {
    const auto tensor = method->loaded->state(name);
    if (tensor.ok()) return use(*tensor);
    const std::string text = "the method has no buffer '" + std::string(name) + "'";
    return fail(tensor.error(), text.c_str());
  });
}

}  // namespace
}  // namespace c_api
}  // namespace etx

etx_status etx_method_load(etx_program* program, const char* name, etx_method** method) {
  return etx_method_load_with(program, name, nullptr, method);
}

etx_status etx_method_load_with(etx_program* program, const char* name,
                                const etx_method_options* options, etx_method** method) {
  return guard({{program, "program"}, {name, "name"}, {method, "method"}}, [&]() -> etx_status {
    etx::StoredBackendOptions stored;
    const std::string reason = etx::c_api::read_options(options, &stored);
    if (!reason.empty()) return fail(Error::InvalidArgument, reason.c_str());
    ErrorText error;
    auto handle = std::make_unique<etx_method>();
    const etx::LoadBackendOptionsMap map = stored.map();
    handle->loaded = etx::LoadedMethod::load(program->loaded, name, &error, {}, &map);
    if (handle->loaded == nullptr) {
      const bool exists = program->loaded->program().method_meta(name).ok();
      return fail(exists ? error.error : Error::NotFound, error.message.c_str());
    }
    *method = handle.release();
    return ETX_OK;
  });
}

void etx_method_free(etx_method* method) { delete method; }

size_t etx_method_num_inputs(const etx_method* method) {
  return method == nullptr ? 0 : method->loaded->method().inputs_size();
}

size_t etx_method_num_outputs(const etx_method* method) {
  return method == nullptr ? 0 : method->loaded->method().outputs_size();
}

etx_status etx_method_set_tensor(etx_method* method, size_t index, const void* data, int32_t dtype,
                                 size_t rank, const int32_t* sizes, const int64_t* strides) {
  const etx::c_api::Required shape = {rank == 0 ? "" : static_cast<const void*>(sizes), "sizes"};
  return guard({{method, "method"}, shape}, [&]() -> etx_status {
    if (rank > etx::kMaxRank) return fail(Error::InvalidArgument, "a tensor has at most 16 sizes");
    const bool is_valid = dtype >= 0 && dtype < etx::kNumScalarTypes;
    const auto type = is_valid ? static_cast<etx::ScalarType>(dtype) : etx::ScalarType(-1);
    int64_t row_major[etx::kMaxRank];
    int64_t count = 1;
    for (size_t i = rank; i-- > 0;) {
      row_major[i] = count;
      const bool overflows = sizes[i] > 0 && count > INT64_MAX / sizes[i];
      if (sizes[i] < 0 || overflows) {
        return fail(Error::InvalidArgument, "a size is negative, or all together are too large");
      }
      count *= sizes[i];
    }
    const bool is_missing = data == nullptr && count != 0;
    if (is_missing) return fail(Error::InvalidArgument, "the argument 'data' is null");
    ErrorText error;
    const bool ok =
        method->loaded->set_tensor(index, data, type, {sizes, rank},
                                   {strides == nullptr ? row_major : strides, rank}, true, &error);
    if (ok) return ETX_OK;
    return fail(error);
  });
}

etx_status etx_method_set_int(etx_method* method, size_t index, int64_t value) {
  return etx::c_api::set_number(method, index, EValue(value));
}

etx_status etx_method_set_double(etx_method* method, size_t index, double value) {
  return etx::c_api::set_number(method, index, EValue(value));
}

etx_status etx_method_set_bool(etx_method* method, size_t index, bool value) {
  return etx::c_api::set_number(method, index, EValue(value));
}

etx_status etx_method_execute(etx_method* method) {
  return guard({{method, "method"}}, [&]() -> etx_status {
    ErrorText error;
    if (method->loaded->execute(&error)) return ETX_OK;
    return fail(error);
  });
}

void etx_method_cancel(etx_method* method) {
  if (method != nullptr) method->loaded->method().cancel();
}

void etx_method_clear_cancel(etx_method* method) {
  if (method != nullptr) method->loaded->method().clear_cancel();
}

void etx_method_set_instruction_budget(etx_method* method, uint64_t instructions) {
  if (method != nullptr) method->loaded->method().set_instruction_budget(instructions);
}

void etx_method_seed(etx_method* method, uint64_t seed) {
  if (method != nullptr) method->loaded->method().seed(seed);
}

etx_status etx_method_get_output(const etx_method* method, size_t index, etx_output* output) {
  return guard({{method, "method"}, {output, "output"}}, [&]() -> etx_status {
    const etx::Method& native = method->loaded->method();
    if (index >= native.outputs_size()) {
      return fail(Error::InvalidArgument, "the method has fewer outputs");
    }
    return etx::c_api::describe(native.get_output(index), output);
  });
}

etx_status etx_method_get_buffer(etx_method* method, const char* name, etx_output* buffer) {
  return etx::c_api::with_buffer(method, name, {buffer, "buffer"}, [&](const etx::Tensor& tensor) {
    return etx::c_api::describe(EValue(tensor.impl()), buffer);
  });
}

etx_status etx_method_set_buffer(etx_method* method, const char* name, const void* data,
                                 size_t size) {
  const auto set = [&](const etx::Tensor& tensor) -> etx_status {
    if (size != tensor.nbytes()) {
      const std::string text = "buffer '" + std::string(name) + "': expected " +
                               std::to_string(tensor.nbytes()) + " bytes, got " +
                               std::to_string(size);
      return fail(Error::InvalidArgument, text.c_str());
    }
    if (!method->loaded->has_state(name)) {
      const Error error = method->loaded->bind_state(name);
      if (error != Error::Ok) return fail(error, "the buffer cannot be given memory");
    }
    if (size != 0) std::memcpy(tensor.mutable_data_ptr(), data, size);
    return ETX_OK;
  };
  return etx::c_api::with_buffer(method, name, {size == 0 ? "" : data, "data"}, set);
}

etx_status etx_method_reset_state(etx_method* method) {
  return guard({{method, "method"}}, [&]() -> etx_status {
    const Error error = method->loaded->reset_state();
    if (error == Error::Ok) return ETX_OK;
    return fail(error, "the initial values cannot be read");
  });
}
