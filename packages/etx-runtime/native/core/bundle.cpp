// SPDX-License-Identifier: BSD-3-Clause
#include <etx/bundle.h>
#include <etx/tensor.h>

#include <cstring>

#include "format.h"
#include "tables.h"

#define Table CalledTable
#include <bundled_program_generated.h>
#undef Table

namespace etx {
namespace {

namespace fbb = ::etx_fbs::bundled_program;

constexpr char kIdentifier[] = "BP08";
constexpr size_t kIdentifierAt = 4;
constexpr size_t kFileAlignment = 16;

const fbb::BundledProgram& bundle_at(const void* root) {
  return *static_cast<const fbb::BundledProgram*>(root);
}

/// Of a list of values; null for one that is neither tensor nor number.
const fbb::Value& stored_at(const void* values, size_t index) {
  return *static_cast<const fbb::Value*>(table_at(values, index));
}

/// A stored tensor as the runtime sees it.
struct Stored {
  TensorImpl impl;
  int32_t sizes[kMaxRank];
  int32_t strides[kMaxRank];
  uint8_t dim_order[kMaxRank];
};

/// Fills `stored`; returns what is wrong with the tensor, or null.
const char* read(const fbb::Tensor& tensor, Stored& stored) {
  const size_t rank = length(tensor.sizes());
  const auto type = static_cast<ScalarType>(static_cast<int8_t>(tensor.scalar_type()));
  if (rank > kMaxRank) return "a tensor has too many dimensions";
  const size_t ordered = length(tensor.dim_order());
  if (ordered != 0 && ordered != rank) return "a dim order is not of the tensor's dimensions";
  uint32_t seen = 0;
  int64_t numel = 1;
  for (size_t d = 0; d < rank; ++d) {
    const auto at = static_cast<flatbuffers::uoffset_t>(d);
    stored.sizes[d] = tensor.sizes()->Get(at);
    stored.dim_order[d] = ordered == 0 ? static_cast<uint8_t>(d) : tensor.dim_order()->Get(at);
    if (stored.dim_order[d] >= rank) return "a dim order is not of the tensor's dimensions";
    seen |= 1u << stored.dim_order[d];
    if (stored.sizes[d] < 0 || numel > INT32_MAX) return "a tensor has impossible sizes";
    numel *= stored.sizes[d];
  }
  if (seen != (1u << rank) - 1) return "a dim order is not of the tensor's dimensions";
  const size_t width = element_size(type);
  if (width == 0) return "a tensor has an unknown scalar type";
  if (numel > INT32_MAX || static_cast<uint64_t>(numel) * width != length(tensor.data())) {
    return "a tensor has more or fewer bytes than its sizes take";
  }
  TensorImpl& impl = stored.impl;
  impl = {};
  impl.sizes = stored.sizes;
  impl.strides = stored.strides;
  impl.dim_order = stored.dim_order;
  impl.rank = static_cast<decltype(impl.rank)>(rank);
  impl.dtype = static_cast<decltype(impl.dtype)>(type);
  impl.numel = impl.capacity = static_cast<intptr_t>(numel);
  impl.data = numel == 0 ? nullptr : const_cast<uint8_t*>(tensor.data()->data());
  Tensor::set_strides(impl);
  return nullptr;
}

const char* check(const void* values) {
  Stored stored;
  for (size_t i = 0; i < length(values); ++i) {
    const fbb::Value& value = stored_at(values, i);
    if (value.val_type() < fbb::ValueUnion::Tensor || value.val_type() > fbb::ValueUnion::Double) {
      return "a bundled value is neither a tensor nor a number";
    }
    if (value.val_type() != fbb::ValueUnion::Tensor) continue;
    const char* const reason = read(*static_cast<const fbb::Tensor*>(value.val()), stored);
    if (reason != nullptr) return reason;
  }
  return nullptr;
}

/// The value with its tensor in `stored`, which was checked.
EValue value_of(const fbb::Value& value, Stored& stored) {
  const void* const held = value.val();
  switch (value.val_type()) {
    case fbb::ValueUnion::Tensor:
      read(*static_cast<const fbb::Tensor*>(held), stored);
      return EValue(&stored.impl);
    case fbb::ValueUnion::Int: return EValue(static_cast<const fbb::Int*>(held)->int_val());
    case fbb::ValueUnion::Bool: return EValue(static_cast<const fbb::Bool*>(held)->bool_val());
    default: return EValue(static_cast<const fbb::Double*>(held)->double_val());
  }
}

}  // namespace

bool Bundle::has_identifier(const void* data, size_t size) {
  if (size < kIdentifierAt + sizeof(kIdentifier) - 1) return false;
  const auto* const bytes = static_cast<const uint8_t*>(data);
  return std::memcmp(bytes + kIdentifierAt, kIdentifier, sizeof(kIdentifier) - 1) == 0;
}

Result<Bundle> Bundle::open(Span<const uint8_t> file, FailureSink* failures) {
  const auto fail = [&](Error error, const char* reason, int64_t offset) {
    Failure failure;
    failure.error = error;
    failure.reason = reason;
    failure.offset = offset;
    if (failures != nullptr) failures->report(failure);
    return error;
  };
  if (reinterpret_cast<uintptr_t>(file.data()) % kFileAlignment != 0) {
    return fail(Error::InvalidArgument, "the bundle's memory must be aligned to 16 bytes", 0);
  }
  if (!has_identifier(file.data(), file.size())) {
    return fail(Error::InvalidProgram, "not a bundled program: expected BP08", kIdentifierAt);
  }
  size_t where = 0;
  if (!verify_tables(file.data(), file.size(), fbb::BundledProgramTypeTable(), &where)) {
    return fail(Error::InvalidProgram, "the bundle's tables are corrupt",
                static_cast<int64_t>(where));
  }
  const void* const root = file.data() + ::flatbuffers::ReadScalar<uint32_t>(file.data());
  const fbb::BundledProgram& bundle = bundle_at(root);
  if (length(bundle.program()) == 0) {
    return fail(Error::InvalidProgram, "the bundle holds no program", 0);
  }
  const Bundle found(root);
  for (size_t suite = 0; suite < found.num_suites(); ++suite) {
    const auto offset =
        static_cast<const uint8_t*>(table_at(bundle.method_test_suites(), suite)) - file.data();
    if (found.method_name(suite) == nullptr) {
      return fail(Error::InvalidProgram, "a test suite names no method", offset);
    }
    for (size_t index = 0; index < found.num_cases(suite); ++index) {
      const auto* const test =
          static_cast<const fbb::BundledMethodTestCase*>(found.case_at(suite, index));
      const char* reason = check(test->inputs());
      if (reason == nullptr) reason = check(test->expected_outputs());
      if (reason == nullptr) continue;
      return fail(Error::InvalidProgram, reason,
                  reinterpret_cast<const uint8_t*>(test) - file.data());
    }
  }
  return found;
}

Span<const uint8_t> Bundle::program() const {
  const auto* const bytes = bundle_at(root_).program();
  return {bytes->data(), bytes->size()};
}

size_t Bundle::num_suites() const { return length(bundle_at(root_).method_test_suites()); }

const char* Bundle::method_name(size_t suite) const {
  return text(at(bundle_at(root_).method_test_suites(), suite).method_name());
}

size_t Bundle::num_cases(size_t suite) const {
  return length(at(bundle_at(root_).method_test_suites(), suite).test_cases());
}

const void* Bundle::case_at(size_t suite, size_t index) const {
  return table_at(at(bundle_at(root_).method_test_suites(), suite).test_cases(), index);
}

size_t Bundle::num_expected(size_t suite, size_t index) const {
  const void* const test = case_at(suite, index);
  return length(static_cast<const fbb::BundledMethodTestCase*>(test)->expected_outputs());
}

Error Bundle::set_inputs(size_t suite, size_t index, Method& method) const {
  const void* const test = case_at(suite, index);
  const void* const inputs = static_cast<const fbb::BundledMethodTestCase*>(test)->inputs();
  if (length(inputs) != method.inputs_size()) return Error::InvalidArgument;
  Stored stored;
  for (size_t i = 0; i < length(inputs); ++i) {
    const Error error = method.set_input(value_of(stored_at(inputs, i), stored), i);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Verdict Bundle::compare(size_t suite, size_t index, size_t output, const EValue& value,
                        Tolerance tolerance) const {
  const void* const test = case_at(suite, index);
  const void* const outputs =
      static_cast<const fbb::BundledMethodTestCase*>(test)->expected_outputs();
  Stored stored;
  return etx::compare(value, value_of(stored_at(outputs, output), stored), tolerance);
}

}  // namespace etx
