// SPDX-License-Identifier: BSD-3-Clause
// fuzz_delegate COUNT SEED FILE...: EthosUBackend loads changed blobs and is called with arguments
// as they are right, or not: each is refused with a reason, or runs, twice with the same results.
// Nothing is written but scratch memory and outputs. By hand (test_native.py):
//
//     build/tests/cpp/fuzz_delegate 1000000 1 seeds/*
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <etx/plugin.h>
#include <etx/tensor.h>

#include "ethos_u/blob.h"
#include "files.h"

extern "C" const etx_plugin* etx_plugin_backend_arm(void);

namespace {

using etx::Error;
using etx::ScalarType;
using etx::npu::Blob;
using etx::npu::Port;

constexpr size_t kMostMemory = size_t{1} << 24, kHeader = 32, kAlignment = 16;
/// How often a call may ask whether to stop, at most, until it is told to.
constexpr size_t kMostAsked = 1 << 14;
constexpr char kKey[] = "weights";

[[noreturn]] void stop(const char* reason) {
  std::fprintf(stderr, "%s\n", reason);
  std::abort();
}

/// Memory of just this size.
struct Block {
  size_t size;
  std::align_val_t alignment;
  uint8_t* data;

  Block(size_t bytes, size_t aligned)
      : size(bytes),
        alignment(static_cast<std::align_val_t>(aligned)),
        data(static_cast<uint8_t*>(::operator new(bytes, alignment))) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { ::operator delete(data, alignment); }
  bool is(const uint8_t* other) const { return size == 0 || std::memcmp(data, other, size) == 0; }
};

/// Memory with an end, or none at all.
struct Memory {
  std::vector<std::unique_ptr<Block>> blocks;
  size_t used = 0;
  bool fails = false;

  void* get(size_t size, size_t alignment) {
    if (fails || size > kMostMemory - used) return nullptr;
    used += size;
    blocks.emplace_back(new Block(size, alignment));
    std::memset(blocks.back()->data, 0xa5, size);
    return blocks.back()->data;
  }
};

struct InitContext : etx_init_context {
  Memory memory;
  const Data* named = nullptr;
  std::string reason;

  InitContext() : etx_init_context{} {
    struct_size = sizeof(etx_init_context);
    method = "forward";
    num_threads = 1;
    allocate = [](etx_init_context* self, size_t size, size_t alignment) {
      return static_cast<InitContext*>(self)->memory.get(size, alignment);
    };
    named_data = [](etx_init_context* self, const char* key, const void** data, size_t* size) {
      const Data* of = static_cast<InitContext*>(self)->named;
      if (of == nullptr || std::strcmp(key, kKey) != 0) {
        return static_cast<etx_status>(Error::NotFound);
      }
      *data = of->data();
      *size = of->size();
      return etx_status{0};
    };
    fail = [](etx_init_context* self, etx_status status, const char* text) {
      static_cast<InitContext*>(self)->reason = text;
      return status;
    };
  }
};

struct Context : etx_context {
  Memory memory;
  std::string reason;
  size_t most_asked = kMostAsked;
  mutable size_t asked = 0;

  Context() : etx_context{} {
    struct_size = sizeof(etx_context);
    num_threads = 1;
    allocate_temp = [](etx_context* self, size_t size, size_t alignment) {
      return static_cast<Context*>(self)->memory.get(size, alignment);
    };
    is_cancelled = [](const etx_context* self) {
      const auto& context = *static_cast<const Context*>(self);
      return ++context.asked > context.most_asked;
    };
    fail = [](etx_context* self, etx_status status, const char* text) {
      static_cast<Context*>(self)->reason = text;
      return status;
    };
  }
};

/// A tensor in memory of its own.
struct Argument {
  etx_tensor tensor{};
  etx_value value{};
  int32_t sizes[1], strides[1] = {1};
  uint8_t order[1] = {0};
  Block block;
  Data before;

  Argument(ScalarType type, size_t count, std::mt19937_64& random)
      : sizes{static_cast<int32_t>(count)}, block(count * etx::element_size(type), kAlignment) {
    for (size_t i = 0; i < block.size; ++i) block.data[i] = static_cast<uint8_t>(random());
    tensor.data = block.data;
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.dim_order = order;
    tensor.numel = tensor.capacity = static_cast<intptr_t>(count);
    tensor.dtype = static_cast<int8_t>(type);
    tensor.rank = 1;
    value.payload.as_tensor = &tensor;
    value.tag = ETX_TAG_TENSOR;
  }
  void note() { before.assign(block.data, block.data + block.size); }
  bool is_as_before() const { return block.is(before.data()); }
};

/// A blob, and its weights where they are not in it.
struct Program {
  Data blob, named;
};

struct Arguments {
  std::vector<std::unique_ptr<Argument>> owned;
  std::vector<etx_value*> values;
  size_t inputs = 0;
};

enum Outcome { kRefused, kStopped, kCancelled, kRan };
constexpr size_t kOutcomes = 4;

ScalarType type_of(uint32_t bytes) {
  constexpr ScalarType kTypes[] = {ScalarType::Byte,  ScalarType::Char, ScalarType::Short,
                                   ScalarType::Short, ScalarType::Int,  ScalarType::Long};
  return kTypes[bytes < std::size(kTypes) ? bytes : std::size(kTypes) - 1];
}

/// Adds tensors of the sizes that the blob names; false where they are too large.
bool add(const etx::npu::Bytes& ports, std::mt19937_64& random, Arguments* arguments) {
  for (size_t i = 0; i < Blob::count(ports); ++i) {
    const Port port = Blob::port(ports, i);
    const ScalarType type = type_of(port.element_size);
    if (port.bytes > kMostMemory / 4) return false;
    const size_t count = static_cast<size_t>(port.bytes) / etx::element_size(type);
    arguments->owned.emplace_back(new Argument(type, count, random));
    arguments->values.push_back(&arguments->owned.back()->value);
  }
  return true;
}

/// Makes one argument wrong, or one more or less of them.
void spoil(Arguments* arguments, std::mt19937_64& random) {
  auto& values = arguments->values;
  const size_t index = random() % values.size();
  Argument& argument = *arguments->owned[index];
  switch (random() % 6) {
    case 0: values.pop_back(); break;
    case 1: values.push_back(values[index]); break;
    case 2: argument.value.tag = static_cast<uint32_t>(random() % 12); break;
    case 3: argument.tensor.numel = argument.sizes[0] /= 2; break;
    case 4: argument.tensor.dtype = static_cast<int8_t>(random() % 24); break;
    default: argument.tensor.flags = ETX_TENSOR_CONSTANT; break;
  }
}

void check_unchanged(const Arguments& arguments) {
  for (size_t i = 0; i < arguments.owned.size(); ++i) {
    const Argument& argument = *arguments.owned[i];
    const bool is_constant = (argument.tensor.flags & ETX_TENSOR_CONSTANT) != 0;
    if (i >= arguments.inputs && !is_constant) continue;
    if (!argument.is_as_before()) stop("an argument was written that is not an output");
  }
}

Outcome call(const etx_backend& backend, void* handle, const Arguments& arguments, bool fails,
             size_t most_asked = kMostAsked) {
  for (const auto& each : arguments.owned) each->note();
  Context context;
  context.memory.fails = fails;
  context.most_asked = most_asked;
  const etx_status status =
      backend.execute(&backend, handle, &context, arguments.values.data(), arguments.values.size());
  check_unchanged(arguments);
  if (status != 0 && context.reason.empty()) stop("a call fails without a reason");
  if (status == 0 && fails) stop("a call without scratch memory runs");
  if (status == static_cast<etx_status>(Error::Cancelled)) return kCancelled;
  if (context.asked > most_asked) stop("a call goes on that was told to stop");
  return status == 0 ? kRan : kStopped;
}

Outcome run(const etx_backend& backend, void* handle, const Blob& blob, std::mt19937_64& random) {
  Arguments arguments;
  if (!add(blob.inputs, random, &arguments)) return kRefused;
  arguments.inputs = arguments.owned.size();
  if (!add(blob.outputs, random, &arguments)) return kRefused;
  if (random() % 16 == 0) call(backend, handle, arguments, true);
  const size_t most_asked = random() % 8 == 0 ? random() % 256 : kMostAsked;
  const Outcome outcome = call(backend, handle, arguments, false, most_asked);
  std::vector<Data> results;
  for (const auto& each : arguments.owned) {
    results.emplace_back(each->block.data, each->block.data + each->block.size);
  }
  for (size_t i = arguments.inputs; i < arguments.owned.size(); ++i) {
    Block& block = arguments.owned[i]->block;
    std::memset(block.data, 0x5a, block.size);
  }
  if (!arguments.owned.empty() && random() % 4 == 0) {
    spoil(&arguments, random);
    call(backend, handle, arguments, false);
    return outcome;
  }
  if (call(backend, handle, arguments, false, most_asked) != outcome) {
    stop("a second call ends in another way");
  }
  for (size_t i = 0; outcome == kRan && i < results.size(); ++i) {
    if (!arguments.owned[i]->block.is(results[i].data())) stop("a second call has other results");
  }
  return outcome;
}

Outcome attempt(const Program& program, std::mt19937_64& random) {
  const etx_backend& backend = *etx_plugin_backend_arm()->backends[0];
  const Block block(program.blob.size(), kAlignment);
  std::memcpy(block.data, program.blob.data(), block.size);
  const Data named = program.named;
  InitContext context;
  context.named = named.empty() ? nullptr : &named;
  context.memory.fails = random() % 64 == 0;
  void* handle = nullptr;
  const etx_status status =
      backend.init(&backend, &context, block.data, block.size, nullptr, 0, &handle);
  Outcome outcome = kRefused;
  if (status != 0) {
    if (context.reason.empty()) stop("a blob is refused without a reason");
  } else {
    Blob blob;
    if (Blob::read(block.data, block.size, &blob) != nullptr) stop("a broken blob is loaded");
    outcome = run(backend, handle, blob, random);
  }
  if (backend.destroy != nullptr) backend.destroy(&backend, handle);
  if (!block.is(program.blob.data()) || named != program.named) stop("constants were written");
  return outcome;
}

struct Part {
  size_t at, length;
};

uint32_t number_at(const Data& data, size_t at) {
  uint32_t number = 0;
  std::memcpy(&number, data.data() + at, sizeof(number));
  return number;
}

size_t padded(size_t length) { return (length + kAlignment - 1) / kAlignment * kAlignment; }

/// The blocks of a whole blob, headers included.
std::vector<Part> parts_of(const Data& blob) {
  std::vector<Part> parts;
  for (size_t at = 0; at < blob.size(); at += parts.back().length) {
    parts.push_back({at, kHeader + padded(at == 0 ? 0 : number_at(blob, at + 16))});
  }
  return parts;
}

/// The same blob with its weights in named data.
Program with_named_weights(const Data& blob) {
  Program made;
  for (const Part& part : parts_of(blob)) {
    const auto begin = blob.begin() + static_cast<ptrdiff_t>(part.at);
    const auto end = begin + static_cast<ptrdiff_t>(part.length);
    made.blob.insert(made.blob.end(), begin, end);
    if (std::strncmp(reinterpret_cast<const char*>(&*begin), "weight_data", 16) != 0) continue;
    made.named.assign(begin + kHeader, begin + kHeader + number_at(blob, part.at + 16));
    const size_t header = made.blob.size() - part.length, length = sizeof(kKey) - 1;
    made.blob.resize(header + kHeader + kAlignment);
    std::memset(&made.blob[header + 16], 0, kHeader - 16 + kAlignment);
    made.blob[header + 16] = static_cast<uint8_t>(length);
    made.blob[header + 20] = 1;
    std::memcpy(&made.blob[header + kHeader], kKey, length);
  }
  return made;
}

uint32_t changed(uint32_t number, std::mt19937_64& random) {
  constexpr uint32_t kNumbers[] = {0,     1,     2,     4,       16,       255,        256,
                                   32768, 65535, 65536, 1 << 24, 1u << 31, UINT32_MAX, 0xfffffff0};
  switch (random() % 4) {
    case 0: return number + static_cast<uint32_t>(random() % 33) - 16;
    case 1: return number ^ 1u << random() % 32;
    case 2: return kNumbers[random() % std::size(kNumbers)];
    default: return (number & ~(0xffu << 8 * (random() % 4))) | static_cast<uint32_t>(random());
  }
}

constexpr size_t kCommands = 1;

/// Changes numbers in headers and contents of blocks, half of them in the commands; leaves out or
/// repeats blocks, cuts the end.
void change(Data* blob, std::mt19937_64& random) {
  const std::vector<Part> parts = parts_of(*blob);
  for (size_t changes = random() % 3 + 1; changes > 0; --changes) {
    const Part part = parts[random() % 2 == 0 ? kCommands : random() % parts.size()];
    const bool in_header = part.length == kHeader || random() % 8 == 0;
    const size_t words = (in_header ? kHeader : part.length - kHeader) / 4;
    const size_t at = part.at + (in_header ? 0 : kHeader) + random() % words * 4;
    const uint32_t number = changed(number_at(*blob, at), random);
    std::memcpy(blob->data() + at, &number, sizeof(number));
  }
  const Part part = parts[random() % parts.size()];
  const auto begin = blob->begin() + static_cast<ptrdiff_t>(part.at);
  const auto end = begin + static_cast<ptrdiff_t>(part.length);
  switch (random() % 64) {
    case 0: blob->erase(begin, end); break;
    case 1: {
      const Data copy(begin, end);
      blob->insert(blob->begin() + static_cast<ptrdiff_t>(parts[random() % parts.size()].at),
                   copy.begin(), copy.end());
      break;
    }
    case 2: blob->resize(random() % blob->size()); break;
    default: break;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  std::mt19937_64 random(std::strtoull(arguments[2], nullptr, 10));
  std::vector<Program> seeds;
  for (int i = 3; i < count; ++i) {
    seeds.push_back({read_file(arguments[i]), {}});
    seeds.push_back(with_named_weights(seeds.back().blob));
  }
  size_t outcomes[kOutcomes] = {};
  for (const Program& seed : seeds) {
    std::mt19937_64 quiet(1);
    if (attempt(seed, quiet) != kRan) return 3;
  }
  for (unsigned long long i = std::strtoull(arguments[1], nullptr, 10); i > 0; --i) {
    Program program = seeds[random() % seeds.size()];
    change(&program.blob, random);
    if (!program.named.empty() && random() % 8 == 0) {
      program.named.resize(random() % program.named.size());
    }
    ++outcomes[attempt(program, random)];
  }
  std::printf("refused %zu, stopped %zu, cancelled %zu, ran %zu\n", outcomes[kRefused],
              outcomes[kStopped], outcomes[kCancelled], outcomes[kRan]);
  return 0;
}
