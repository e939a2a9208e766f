// SPDX-License-Identifier: BSD-3-Clause
// Loads and runs changed blobs: `fuzz_blobs RUNS SEED BLOB...`. Numbers where they lie, the ends of
// types, neighbours of what was there; each is refused with a reason, or runs. Prints how many did.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <etx/plugin.h>
#include <etx/tensor.h>
#include <etx/value.h>

#include "graph/blob.h"

extern "C" const etx_plugin* etx_plugin_backend_xnnpack(void);

namespace {

using etx::ScalarType;
using etx::xnnpack::kNone;
using Bytes = std::vector<uint8_t>;

constexpr size_t kMostMemory = size_t{64} << 20;

/// XNNPACK's memory, with an end: what a blob asks for must not fill the machine.
namespace memory {
void* allocate(void*, size_t size) { return size > kMostMemory ? nullptr : std::malloc(size); }
void* reallocate(void*, void* old, size_t size) {
  return size > kMostMemory ? nullptr : std::realloc(old, size);
}
void deallocate(void*, void* pointer) { std::free(pointer); }
void* aligned_allocate(void*, size_t alignment, size_t size) {
  void* result = nullptr;
  if (size > kMostMemory || posix_memalign(&result, alignment, size) != 0) return nullptr;
  return result;
}
constexpr xnn_allocator kAllocator = {nullptr,    allocate,         reallocate,
                                      deallocate, aligned_allocate, deallocate};
}  // namespace memory

/// The runtime's side: memory of a method, and no named data.
struct InitContext : etx_init_context {
  std::vector<std::unique_ptr<char[]>> kept;
  std::string reason;

  InitContext() : etx_init_context{} {
    struct_size = sizeof(etx_init_context);
    method = "forward";
    num_threads = 2;
    allocate = [](etx_init_context* self, size_t size, size_t) -> void* {
      if (size > kMostMemory) return nullptr;
      auto& blocks = static_cast<InitContext*>(self)->kept;
      blocks.emplace_back(new char[size + 16]);
      return blocks.back().get();
    };
    named_data = [](etx_init_context*, const char*, const void**, size_t*) {
      return static_cast<etx_status>(etx::Error::NotFound);
    };
    fail = [](etx_init_context* self, etx_status status, const char* text) {
      static_cast<InitContext*>(self)->reason = text;
      return status;
    };
  }
};

struct Context : etx_context {
  std::string reason;

  Context() : etx_context{} {
    struct_size = sizeof(etx_context);
    num_threads = 2;
    parallel_for = [](etx_context*, int64_t begin, int64_t end, int64_t,
                      void (*body)(void*, int64_t, int64_t), void* user) {
      for (int64_t i = end; i > begin; --i) body(user, i - 1, i);
    };
    fail = [](etx_context* self, etx_status status, const char* text) {
      static_cast<Context*>(self)->reason = text;
      return status;
    };
  }
};

constexpr uint8_t kBehind = 0xa5;

/// XNNPACK reads, but does not use, some bytes behind tensors.
std::unique_ptr<char[]> with_slack(const void* bytes, size_t size) {
  std::unique_ptr<char[]> copy(new char[size + XNN_EXTRA_BYTES]);
  std::memset(copy.get(), kBehind, size + XNN_EXTRA_BYTES);
  if (bytes != nullptr) std::memcpy(copy.get(), bytes, size);
  return copy;
}

/// An argument; nothing may be written behind it.
struct Argument {
  etx_tensor tensor{};
  etx_value value{};
  std::vector<int32_t> sizes, strides;
  std::vector<uint8_t> order;
  std::unique_ptr<char[]> bytes;
  size_t size = 0;

  Argument(const etx::xnnpack::Shape& shape, ScalarType type)
      : sizes(shape.rank), strides(shape.rank), order(shape.rank) {
    size_t count = 1;
    for (uint32_t i = 0; i < shape.rank; ++i) {
      sizes[i] = static_cast<int32_t>(shape.sizes[i]);
      order[i] = static_cast<uint8_t>(i);
      count *= shape.sizes[i];
    }
    size = count * etx::element_size(type);
    bytes = with_slack(nullptr, size);
    std::memset(bytes.get(), 1, size);
    tensor = {bytes.get(), sizes.data(), strides.data(), order.data(), 0, 0, 0, 0, 1, 0, 0};
    tensor.numel = tensor.capacity = static_cast<int64_t>(count);
    tensor.dtype = static_cast<int8_t>(type);
    tensor.rank = static_cast<uint8_t>(shape.rank);
    etx::Tensor::set_strides(tensor);
    value.payload.as_tensor = &tensor;
    value.tag = ETX_TAG_TENSOR;
  }

  void check_behind() const {
    for (size_t i = 0; i < XNN_EXTRA_BYTES; ++i) {
      if (static_cast<uint8_t>(bytes[size + i]) != kBehind) std::abort();
    }
  }
};

using Arguments = std::vector<std::unique_ptr<Argument>>;

ScalarType type_of(xnn_datatype type) {
  switch (type) {
    case xnn_datatype_fp16: return ScalarType::Half;
    case xnn_datatype_qint8: return ScalarType::Char;
    case xnn_datatype_quint8: return ScalarType::Byte;
    case xnn_datatype_int32: return ScalarType::Long;
    default: return ScalarType::Float;
  }
}

struct Counts {
  size_t refused = 0, loaded = 0, ran = 0;
  /// Refused by XNNPACK, which blame_node found the node for.
  size_t blamed = 0;
};

/// The arguments that the graph asks for; none where they are too large.
Arguments arguments_of(const Bytes& blob) {
  Arguments arguments;
  InitContext context;
  etx::xnnpack::Blob parts;
  etx::xnnpack::Graph graph;
  if (etx::xnnpack::read_blob(blob.data(), blob.size(), &parts) != etx::Error::Ok) return arguments;
  if (etx::xnnpack::read_graph(parts, &context, &graph) != etx::Error::Ok) return arguments;
  size_t total = 0;
  for (uint32_t i = 0; i < graph.num_externals; ++i) {
    if (graph.externals[i] == kNone) return {};
    const auto& value = graph.values[graph.externals[i]];
    total += value.shape.count() * 8;
    if (total > kMostMemory) return {};
    arguments.emplace_back(new Argument(value.shape, type_of(value.type)));
  }
  return arguments;
}

void run(const etx_backend& backend, void* handle, const Arguments& arguments,
         std::minstd_rand& random, Counts* counts) {
  std::vector<etx_value*> values;
  for (const auto& each : arguments) values.push_back(&each->value);
  for (int turn = 0; turn < 3; ++turn) {
    Context context;
    const etx_status status =
        backend.execute(&backend, handle, &context, values.data(), values.size());
    if (status == 0) ++counts->ran;
    if (status != 0 && context.reason.empty()) std::abort();
    for (const auto& each : arguments) each->check_behind();
    for (const auto& owned : arguments) {
      Argument& each = *owned;
      if (each.sizes.empty() || random() % 2 == 0) continue;
      const size_t dim = random() % each.sizes.size();
      if (each.sizes[dim] > 1) each.sizes[dim] -= 1;
      each.tensor.numel = 1;
      for (const int32_t size : each.sizes) each.tensor.numel *= size;
      etx::Tensor::set_strides(each.tensor);
    }
  }
}

void attempt(const Bytes& bytes, std::minstd_rand& random, Counts* counts) {
  const auto blob = with_slack(bytes.data(), bytes.size());
  const etx_backend& backend = *etx_plugin_backend_xnnpack()->backends[0];
  InitContext context;
  void* handle = nullptr;
  const etx_status status =
      backend.init(&backend, &context, blob.get(), bytes.size(), nullptr, 0, &handle);
  if (status != 0) {
    if (context.reason.empty()) std::abort();
    ++counts->refused;
    if (context.reason.find("XNNPACK does not take") != std::string::npos) ++counts->blamed;
    return;
  }
  ++counts->loaded;
  const Arguments arguments = arguments_of(bytes);
  if (!arguments.empty()) run(backend, handle, arguments, random, counts);
  backend.destroy(&backend, handle);
}

/// A number of 1, 2, 4 or 8 bytes becomes another one.
void change(Bytes* blob, std::minstd_rand& random) {
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          3,
                                          4,
                                          7,
                                          8,
                                          16,
                                          31,
                                          32,
                                          33,
                                          64,
                                          127,
                                          128,
                                          255,
                                          256,
                                          65535,
                                          65536,
                                          1 << 20,
                                          1 << 24,
                                          1u << 31,
                                          UINT32_MAX,
                                          UINT32_MAX - 1,
                                          ~0ull};
  const size_t width = size_t{1} << (random() % 4);
  if (blob->size() < 64 + width) return;
  const size_t from = random() % 8 == 0 ? 0 : 32;
  const size_t place = from + random() % ((blob->size() - from - width) / width) * width;
  uint64_t number = 0;
  std::memcpy(&number, blob->data() + place, width);
  switch (random() % 4) {
    case 0: number += random() % 5 - 2; break;
    case 1: number ^= uint64_t{1} << (random() % (8 * width)); break;
    default: number = kNumbers[random() % std::size(kNumbers)]; break;
  }
  std::memcpy(blob->data() + place, &number, width);
}

Bytes read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t runs = std::strtoul(argv[1], nullptr, 10);
  std::minstd_rand random(static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  if (xnn_initialize(&memory::kAllocator) != xnn_status_success) return 2;
  std::vector<Bytes> seeds;
  for (int i = 3; i < argc; ++i) seeds.push_back(read_file(argv[i]));
  Counts whole;
  for (const Bytes& seed : seeds) attempt(seed, random, &whole);
  std::printf("seeds: %zu refused, %zu loaded, %zu calls ran\n", whole.refused, whole.loaded,
              whole.ran);
  Counts counts;
  for (size_t i = 0; i < runs; ++i) {
    Bytes blob = seeds[random() % seeds.size()];
    for (size_t count = 1 + random() % 3; count > 0; --count) change(&blob, random);
    if (random() % 64 == 0) blob.resize(random() % (blob.size() + 1));
    const char* kept = std::getenv("ETX_FUZZ_KEEP");
    if (kept != nullptr) {
      std::ofstream(kept, std::ios::binary)
          .write(reinterpret_cast<const char*>(blob.data()),
                 static_cast<std::streamsize>(blob.size()));
    }
    attempt(blob, random, &counts);
  }
  std::printf("changed: %zu refused, %zu of them by XNNPACK, %zu loaded, %zu calls ran\n",
              counts.refused, counts.blamed, counts.loaded, counts.ran);
  return whole.refused == 0 ? 0 : 1;
}
