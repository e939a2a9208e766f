// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <etx/hosted/loaders.h>
#include <etx/program.h>

#include "reserved.h"

namespace etx::fuzz {
namespace {

constexpr size_t kMostMemory = 1 << 20;
/// Of what is reserved: sizes of 2^33 elements and more.
constexpr size_t kMostReserved = size_t{1} << 37;
/// Bytes at either end of a large tensor that are written or read.
constexpr size_t kEdge = 4096;
constexpr uint64_t kBudget = 300;

/// Gives each piece a block of its own; large ones are reserved, not committed, and zero.
class Pieces final : public MemoryAllocator {
 public:
  Pieces() : MemoryAllocator(0, nullptr) {}
  ~Pieces() { Pieces::reset(); }
  void* allocate(size_t size, size_t alignment) override {
    void* piece = nullptr;
    if (size > kMostMemory - total_) return reserve(size, alignment);
    if (posix_memalign(&piece, alignment < 16 ? 16 : alignment, size) != 0) return nullptr;
    std::memset(piece, 0xa5, size);
    pieces_.push_back(piece);
    total_ += size;
    return piece;
  }
  void reset() override {
    for (void* piece : pieces_) std::free(piece);
    pieces_.clear();
    large_.clear();
    total_ = reserved_ = 0;
  }

 private:
  void* reserve(size_t size, size_t alignment) {
    if (size > kMostReserved - reserved_) return nullptr;
    const size_t most = alignment < 16 ? 16 : alignment;
    reserved_ += size;
    large_.push_back(std::make_unique<Reserved>((size + most - 1) / most * most));
    return large_.back()->data();
  }

  std::vector<void*> pieces_;
  std::vector<std::unique_ptr<Reserved>> large_;
  size_t total_ = 0;
  size_t reserved_ = 0;
};

[[noreturn]] void give_up(const char* what, const Failure& failure) {
  std::fprintf(stderr, "%s: %s (0x%02x)\n", what,
               failure.reason == nullptr ? "no reason" : failure.reason,
               static_cast<unsigned>(failure.error));
  std::abort();
}

struct Sink final : FailureSink {
  void report(const Failure& failure) override {
    ++count;
    const bool is_placed = failure.offset >= 0 || failure.instruction >= 0 ||
                           failure.name != nullptr || failure.index >= 0;
    if (failure.error == Error::Ok || failure.reason == nullptr || !is_placed) {
      give_up("a failure says not what or where", failure);
    }
  }
  int count = 0;
};

struct Weights final : NamedDataMap {
  Result<Span<const uint8_t>> get_data(const char* key) const override {
    if (std::strcmp(key, "w") != 0) return Error::NotFound;
    return Span<const uint8_t>(reinterpret_cast<const uint8_t*>(kData), sizeof(kData));
  }
  Result<TensorLayout> get_tensor_layout(const char* key) const override {
    if (std::strcmp(key, "w") != 0) return Error::NotFound;
    return TensorLayout{ScalarType::Float, kSizes, kOrder};
  }
  size_t get_num_keys() const override { return 1; }
  const char* get_key(size_t) const override { return "w"; }

  alignas(16) static constexpr float kData[6] = {1, 2, 3, 4, 5, 6};
  static constexpr int32_t kSizes[2] = {2, 3};
  static constexpr uint8_t kOrder[2] = {0, 1};
};

/// The numbers that break arithmetic: those at the ends of a type, and of others that have no
/// order.
template <typename T>
T extreme(uint8_t byte) {
  using Limits = std::numeric_limits<T>;
  const T kNumbers[] = {Limits::lowest(),
                        Limits::max(),
                        Limits::has_infinity ? Limits::infinity() : static_cast<T>(INT32_MAX),
                        Limits::has_quiet_NaN ? Limits::quiet_NaN() : static_cast<T>(INT32_MIN),
                        static_cast<T>(-Limits::infinity()),
                        Limits::denorm_min(),
                        Limits::min(),
                        static_cast<T>(-1)};
  return kNumbers[byte % std::size(kNumbers)];
}

template <typename T>
T number_of(uint8_t byte) {
  return byte >= 0xf0 ? extreme<T>(byte) : static_cast<T>(byte % 11 - 2);
}

/// One element of the tensor's dtype: mostly a small number, else one at the end of the dtype.
void make_element(ScalarType type, uint8_t byte, uint8_t (&bytes)[16]) {
  if (type == ScalarType::Bool) {
    bytes[0] = byte & 1;
  } else if (type == ScalarType::Float) {
    const auto number = number_of<float>(byte);
    std::memcpy(bytes, &number, sizeof(number));
  } else if (type == ScalarType::Double) {
    const auto number = number_of<double>(byte);
    std::memcpy(bytes, &number, sizeof(number));
  } else if (type == ScalarType::Int) {
    const auto number = number_of<int32_t>(byte);
    std::memcpy(bytes, &number, sizeof(number));
  } else if (is_integral(type, false)) {
    const auto number = number_of<int64_t>(byte);
    std::memcpy(bytes, &number, sizeof(number));
  } else {
    std::memset(bytes, byte, sizeof(bytes));
  }
}

/// Numbers taken from the bytes of the file; a large tensor has zeros between its ends.
void fill(const TensorInfo& info, const uint8_t* data, size_t size, void* target) {
  const size_t element = element_size(info.scalar_type());
  const size_t count = info.nbytes() / element;
  for (size_t i = 0; i < count; ++i) {
    if (i == kEdge && count > kMostMemory) i = count - kEdge;
    uint8_t bytes[16] = {};
    make_element(info.scalar_type(), data[(i * 7 + 64) % size], bytes);
    std::memcpy(static_cast<uint8_t*>(target) + i * element, bytes, element);
  }
}

/// Memory for the inputs and outputs that have none, and values for all inputs.
class Bindings {
 public:
  Bindings(Method& method, const uint8_t* data, size_t size)
      : method_(method), meta_(method.method_meta()), data_(data), size_(size) {}

  bool set_inputs(bool smaller) {
    for (size_t i = 0; i < meta_.num_inputs(); ++i) {
      const auto info = meta_.input_tensor_meta(i);
      if (!info.ok()) {
        const EValue given = method_.get_input(i);
        if (method_.set_input(given, i) != Error::Ok) return false;
        continue;
      }
      int32_t sizes[kMaxRank] = {};
      int32_t strides[kMaxRank] = {};
      void* bytes = memory_.allocate(info->nbytes(), 16);
      if (bytes == nullptr) return false;
      fill(*info, data_, size_, bytes);
      TensorImpl tensor{};
      tensor.data = bytes;
      tensor.sizes = sizes;
      tensor.strides = strides;
      tensor.dim_order = info->dim_order().data();
      tensor.dtype = static_cast<int8_t>(info->scalar_type());
      tensor.rank = static_cast<uint8_t>(info->sizes().size());
      tensor.numel = 1;
      const bool shrinks = smaller && info->shape_dynamism() != TensorShapeDynamism::Static;
      for (size_t d = 0; d < info->sizes().size(); ++d) {
        sizes[d] = shrinks ? info->sizes()[d] - info->sizes()[d] / 2 : info->sizes()[d];
        tensor.numel *= sizes[d];
      }
      Tensor::set_strides(tensor);
      const Error error = method_.set_input(EValue(&tensor), i);
      if (error != Error::Ok) give_up("an input was refused", method_.last_failure());
    }
    return true;
  }

  bool set_outputs() {
    for (size_t i = 0; i < meta_.num_outputs(); ++i) {
      const auto info = meta_.output_tensor_meta(i);
      if (!info.ok() || !method_.get_output(i).is_tensor()) continue;
      void* bytes = memory_.allocate(info->nbytes(), 16);
      if (bytes == nullptr) return false;
      const Error error = method_.set_output_data_ptr(bytes, info->nbytes(), i);
      if (error != Error::Ok && error != Error::InvalidState) {
        give_up("an output was refused", method_.last_failure());
      }
    }
    return true;
  }

 private:
  Method& method_;
  MethodMeta meta_;
  const uint8_t* data_;
  size_t size_;
  Pieces memory_;
};

/// Reads what the outputs hold, as a caller would.
void read_outputs(const Method& method, uint32_t& digest) {
  volatile uint32_t state = digest;  // All is read, whether or not somebody asks for the digest.
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    const EValue& value = method.get_output(i);
    if (!value.is_tensor()) continue;
    const Tensor tensor = value.to_tensor();
    const auto* bytes = tensor.const_data_ptr<uint8_t>();
    if (bytes == nullptr) continue;
    for (size_t k = 0; k < tensor.nbytes(); ++k) {
      if (k == kEdge && tensor.nbytes() > kMostMemory) k = tensor.nbytes() - kEdge;
      state = (state ^ bytes[k]) * 16777619u;
    }
  }
  digest = state;
}

void run_method(const Program& program, const MethodMeta& meta, const uint8_t* data, size_t size,
                const NamedDataMap& weights, bool execute, Counts& counts) {
  Pieces method_memory, planned_memory, temporary;
  std::vector<Span<uint8_t>> arenas;
  bool is_large = false;
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    const size_t arena = *meta.memory_planned_buffer_size(i);
    arenas.emplace_back(static_cast<uint8_t*>(planned_memory.allocate(arena, 16)), arena);
    if (arenas.back().data() == nullptr) return;
    is_large |= arena > kMostMemory;
  }
  HierarchicalAllocator planned(Span<Span<uint8_t>>(arenas.data(), arenas.size()), is_large);
  MemoryManager memory(&method_memory, &planned, &temporary);
  Sink sink;
  const Registry registry(plugins());
  auto method = program.load_method(meta.name(), &memory, registry, nullptr, &weights, &sink);
  if (!method.ok()) {
    Failure failure;
    failure.error = method.error();
    if (sink.count == 0) give_up("a method failed to load without a report", failure);
    return;
  }
  ++counts.methods;
  if (!execute) return;
  method->set_instruction_budget(kBudget);
  Bindings bindings(*method, data, size);
  if (!bindings.set_outputs()) return;
  for (int turn = 0; turn < 2; ++turn) {
    Error error = Error::Ok;
    bool is_set = false;
    const bool ended = run_within_budget([&] {
      is_set = bindings.set_inputs(turn == 1);
      if (is_set) error = method->execute();
    });
    counts.left += !ended;
    counts.ran += is_set && ended && error == Error::Ok;
    counts.refused += is_set && ended && error != Error::Ok;
    if (!ended || !is_set) return;
    if (error == Error::Ok) {
      read_outputs(*method, counts.digest);
      continue;
    }
    const Failure& failure = method->last_failure();
    if (failure.instruction < 0 && failure.index < 0) give_up("an execution failed", failure);
  }
}

}  // namespace

Copy::Copy(const uint8_t* data, size_t size) : data_(nullptr) {
  void* copy = nullptr;
  if (posix_memalign(&copy, 16, size) != 0) std::abort();
  if (size != 0) std::memcpy(copy, data, size);
  data_ = static_cast<uint8_t*>(copy);
}

Copy::~Copy() { std::free(data_); }

void run_program(const uint8_t* data, size_t size, bool execute, Counts* counts) {
  const Copy copy(data, size);
  const BufferDataLoader loader(copy.data(), size);
  Sink sink;
  const auto program = Program::load(&loader, Program::Verification::Full, &sink);
  if (!program.ok()) {
    Failure failure;
    failure.error = program.error();
    if (sink.count == 0) give_up("a program failed to load without a report", failure);
    return;
  }
  for (size_t i = 0; i < program->num_methods() && i < 4; ++i) {
    const MethodMeta meta = *program->method_meta(*program->get_method_name(i));
    Counts unread;
    run_method(*program, meta, copy.data(), size, Weights(), execute,
               counts == nullptr ? unread : *counts);
  }
}

void run_named_data(const uint8_t* data, size_t size) {
  const Copy copy(data, size);
  const BufferDataLoader loader(copy.data(), size);
  Sink sink;
  const auto program = Program::load(&loader, Program::Verification::Full, &sink);
  if (!program.ok()) return;
  volatile uint64_t total = 0;
  for (size_t i = 0; i < program->num_named_data(); ++i) {
    const auto bytes = program->load_named_data(*program->named_data_key(i));
    if (!bytes.ok()) give_up("named data is not found", Failure());
    for (size_t k = 0; k < bytes->size(); ++k) total = total + bytes->bytes()[k];
  }
  if (program->named_data_key(program->num_named_data()).ok()) {
    give_up("there is more named data than was said", Failure());
  }
  run_program(data, size, false);
}

namespace {

/// Runs the program of ETX_FUZZ_PROGRAM, if any, with weights of `map`.
void run_with_weights(const NamedDataMap& map) {
  static const std::vector<uint8_t> file = [] {
    const char* const path = std::getenv("ETX_FUZZ_PROGRAM");
    std::ifstream stream(path == nullptr ? "" : path, std::ios::binary);
    return std::vector<uint8_t>{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
  }();
  if (file.empty()) return;
  const Copy copy(file.data(), file.size());
  const BufferDataLoader loader(copy.data(), file.size());
  const auto program = Program::load(&loader);
  if (!program.ok()) give_up("the program of ETX_FUZZ_PROGRAM was refused", Failure());
  Counts unread;
  for (size_t i = 0; i < program->num_methods(); ++i) {
    const MethodMeta meta = *program->method_meta(*program->get_method_name(i));
    run_method(*program, meta, copy.data(), file.size(), map, true, unread);
  }
}

}  // namespace

void run_ptd(const uint8_t* data, size_t size) {
  const Copy copy(data, size);
  std::string message;
  const auto loader = std::make_shared<const BufferDataLoader>(copy.data(), size);
  const auto map = PtdDataMap::from(loader, &message);
  if (map == nullptr) {
    if (message.empty()) give_up("a .ptd was refused without a message", Failure());
    return;
  }
  volatile uint64_t total = 0;
  for (size_t i = 0; i < map->get_num_keys(); ++i) {
    const auto bytes = map->get_data(map->get_key(i));
    if (!bytes.ok()) give_up("a key of a .ptd is not found", Failure());
    for (const uint8_t byte : *bytes) total = total + byte;
    const auto layout = map->get_tensor_layout(map->get_key(i));
    if (!layout.ok()) continue;
    for (const int32_t item : layout->sizes) total = total + static_cast<uint64_t>(item);
    for (const uint8_t item : layout->dim_order) total = total + item;
  }
  if (map->get_data("no such key").ok()) give_up("a key that is not there is found", Failure());
  run_with_weights(*map);
}

}  // namespace etx::fuzz
