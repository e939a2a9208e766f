// SPDX-License-Identifier: BSD-3-Clause
#include "blob.h"

#include <cstring>

#include <xnnpack_generated.h>

namespace etx::xnnpack {
namespace {

namespace fbs = etx_fbs::xnnpack;

constexpr size_t kHeaderSize = 30;

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

Error read_graph_table(const uint8_t* bytes, size_t size, size_t place, Blob* blob) {
  if (size < 8) return fail(Error::InvalidProgram, "the graph has %zu bytes", size);
  const bool is_known =
      std::memcmp(bytes + 4, "XN01", 4) == 0 || std::memcmp(bytes + 4, "XN00", 4) == 0;
  if (!is_known) {
    return fail(Error::DelegateInvalidCompatibility, "byte %zu: the identifier is not XN01 or XN00",
                place + 4);
  }
  if (reinterpret_cast<uintptr_t>(bytes) % 8 != 0) {
    return fail(Error::InvalidProgram, "byte %zu: the graph is not aligned to 8 bytes", place);
  }
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;
  flatbuffers::Verifier verifier(bytes, size, options);
  if (!verifier.VerifyBuffer<fbs::Graph>(nullptr)) {
    return fail(Error::InvalidProgram, "the graph at byte %zu is damaged", place);
  }
  blob->graph = flatbuffers::GetRoot<fbs::Graph>(bytes);
  return Error::Ok;
}

}  // namespace

Error read_blob(const void* data, size_t size, Blob* blob) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  *blob = {};
  if (size < 8 || std::memcmp(bytes + 4, "XH00", 4) != 0) {
    return read_graph_table(bytes, size, 0, blob);
  }
  if (size < kHeaderSize) {
    return fail(Error::InvalidProgram, "the header needs 30 bytes, there are %zu", size);
  }
  const size_t length = load<uint16_t>(bytes + 8);
  const size_t start = load<uint32_t>(bytes + 10);
  const size_t graph_size = load<uint32_t>(bytes + 14);
  const size_t constants = load<uint32_t>(bytes + 18);
  const uint64_t constants_size = load<uint64_t>(bytes + 22);
  if (length < kHeaderSize || start < kHeaderSize || start > size || graph_size > size - start) {
    return fail(Error::InvalidProgram,
                "the header says that the graph takes %zu bytes at %zu, the blob has %zu",
                graph_size, start, size);
  }
  if (constants_size != 0) {
    if (constants > size || constants_size > size - constants) {
      return fail(Error::InvalidProgram,
                  "the header says that constants take %llu bytes at %zu, the blob has %zu",
                  static_cast<unsigned long long>(constants_size), constants, size);
    }
    blob->constants = bytes + constants;
    blob->constants_size = static_cast<size_t>(constants_size);
  }
  return read_graph_table(bytes + start, graph_size, start, blob);
}

Error find_constant(const Blob& blob, etx_init_context* context, uint32_t index, const void** data,
                    size_t* size) {
  const auto* places = blob.graph->constant_data();
  const auto* inlined = blob.graph->inline_constants();
  if (places != nullptr && index < places->size()) {
    const fbs::ConstantPlace& place = *places->Get(index);
    if (place.named_key() != nullptr) {
      const auto status =
          static_cast<Error>(context->named_data(context, place.named_key()->c_str(), data, size));
      if (status == Error::Ok) return Error::Ok;
      const char* const what = status == Error::NotFound ? "the program has no named data"
                               : status == Error::MemoryAllocationFailed
                                   ? "the method's memory has no room for named data"
                                   : "the program's loader fails with named data";
      return fail(status, "constant %u: %s '%.80s'", index, what, place.named_key()->c_str());
    }
    if (place.offset() > blob.constants_size ||
        place.size() > blob.constants_size - place.offset()) {
      return fail(Error::InvalidProgram, "constant %u lies outside of the blob's %zu bytes", index,
                  blob.constants_size);
    }
    *data = blob.constants + place.offset();
    *size = static_cast<size_t>(place.size());
    return Error::Ok;
  }
  if (inlined != nullptr && index < inlined->size() && inlined->Get(index)->data() != nullptr) {
    *data = inlined->Get(index)->data()->data();
    *size = inlined->Get(index)->data()->size();
    return Error::Ok;
  }
  return fail(Error::InvalidProgram, "there is not constant %u", index);
}

}  // namespace etx::xnnpack
