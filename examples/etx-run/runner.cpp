// SPDX-License-Identifier: BSD-3-Clause
#include "runner.h"

#include <etx/bundle.h>
#include <etx/etdump.h>
#include <etx/program.h>

#include "text.h"

namespace etx_run {
namespace {

using etx::Error;

constexpr char kUsage[] =
    "usage: etx-run MODEL [--method NAME] [--input FILE]... [--shape 1,3,8]... [--output PREFIX]\n"
    "               [--iterations N] [--temp BYTES]\n"
    "               [--etdump FILE [--values stats|all|outputs] [--trace-bytes N] [--value-bytes "
    "N]]\n"
    "       etx-run BUNDLE [--atol X] [--rtol X] [--temp BYTES]\n"
    "Inputs are raw bytes, one file for each tensor input; --shape gives the shape of the tensor\n"
    "inputs in order where it is not the largest. Outputs are written to PREFIX<index>.bin.\n"
    "Scratch memory of kernels begins with --temp bytes (65536) and grows as they ask for more.\n"
    "--etdump records times in --trace-bytes (65536) of the first arena's memory, and results in\n"
    "--value-bytes (0), which go to FILE.bin. Of a bundle (.bpte) all test cases are run, and "
    "each\n"
    "output may be off by --atol (1e-5) and --rtol (1e-5) of the expected number.\n";

constexpr size_t kMaxInputs = 32;
constexpr size_t kMaxArenas = 8;

struct Options {
  const char* model = nullptr;
  const char* method = "forward";
  const char* output = nullptr;
  const char* inputs[kMaxInputs] = {};
  const char* shapes[kMaxInputs] = {};
  size_t num_inputs = 0, num_shapes = 0;
  int32_t iterations = 1;
  int32_t temp = 1 << 16;
  const char* etdump = nullptr;
  const char* values = nullptr;
  int32_t trace_bytes = 1 << 16;
  int32_t value_bytes = 0;
  etx::Tolerance tolerance;
};

bool parse_number(const char* text, int32_t& number) {
  const char* const end = read_number(text, number);
  return end != nullptr && *end == '\0';
}

bool parse_recording(const char* word, const char* value, Options& options) {
  if (same(word, "--etdump")) {
    options.etdump = value;
  } else if (same(word, "--values")) {
    options.values = value;
    return same(value, "stats") || same(value, "all") || same(value, "outputs");
  } else if (same(word, "--trace-bytes")) {
    return parse_number(value, options.trace_bytes);
  } else if (same(word, "--value-bytes")) {
    return parse_number(value, options.value_bytes);
  } else if (same(word, "--atol")) {
    return read_decimal(value, options.tolerance.absolute);
  } else if (same(word, "--rtol")) {
    return read_decimal(value, options.tolerance.relative);
  } else {
    return false;
  }
  return true;
}

bool parse(int argc, const char* const* argv, Options& options) {
  for (int i = 0; i < argc; ++i) {
    const char* const word = argv[i];
    if (word[0] != '-') {
      if (options.model != nullptr) return false;
      options.model = word;
      continue;
    }
    if (++i == argc) return false;
    const char* const value = argv[i];
    bool ok = true;
    if (same(word, "--method")) {
      options.method = value;
    } else if (same(word, "--output")) {
      options.output = value;
    } else if (same(word, "--input")) {
      ok = options.num_inputs < kMaxInputs;
      if (ok) options.inputs[options.num_inputs++] = value;
    } else if (same(word, "--shape")) {
      ok = options.num_shapes < kMaxInputs;
      if (ok) options.shapes[options.num_shapes++] = value;
    } else if (same(word, "--iterations")) {
      ok = parse_number(value, options.iterations) && options.iterations > 0;
    } else if (same(word, "--temp")) {
      ok = parse_number(value, options.temp);
    } else {
      ok = parse_recording(word, value, options);
    }
    if (!ok) return false;
  }
  return options.model != nullptr;
}

/// Prints every failure of a load.
class Failures final : public etx::FailureSink {
 public:
  explicit Failures(Platform& platform) : platform_(platform) {}
  void report(const etx::Failure& failure) override { print(failure); }

  /// Prints a failure of `what`, a file, and returns the exit code.
  int print(const etx::Failure& failure, const char* what = nullptr) {
    Text line;
    line << "etx-run: ";
    if (what != nullptr) line << what << ": ";
    if (failure.name != nullptr) line << failure.name;
    if (failure.name != nullptr && failure.overload != nullptr && *failure.overload != '\0') {
      line << "." << failure.overload;
    }
    if (failure.name != nullptr) line << ": ";
    line << (failure.reason == nullptr ? "failed" : failure.reason) << " [";
    if (failure.instruction >= 0) line << "instruction " << failure.instruction << ", ";
    if (failure.index >= 0) line << "index " << failure.index << ", ";
    if (failure.offset >= 0) line << "byte " << failure.offset << ", ";
    line << failure.error << "]\n";
    platform_.print(line.c_str());
    return 1;
  }

 private:
  Platform& platform_;
};

/// Memory that grows: a piece that does not fit goes into a block of its own size or twice
/// all that there is. Blocks are kept, and used again after a reset.
class GrowingMemory final : public etx::MemoryAllocator {
 public:
  GrowingMemory(Platform& platform, size_t size)
      : MemoryAllocator(0, nullptr), platform_(platform) {
    add(size);
  }
  ~GrowingMemory() = default;

  void* allocate(size_t size, size_t alignment) override {
    void* piece = MemoryAllocator::allocate(size, alignment);
    while (piece == nullptr && current_ + 1 < count_) {
      use(current_ + 1);
      piece = MemoryAllocator::allocate(size, alignment);
    }
    if (piece == nullptr && size < SIZE_MAX / 4 && alignment < SIZE_MAX / 4) {
      const size_t room = size + alignment;
      const bool doubles = total_ > room / 2 && total_ < SIZE_MAX / 4;
      if ((doubles && add(total_ * 2)) || add(room)) {
        piece = MemoryAllocator::allocate(size, alignment);
      }
    }
    if (full_ + used_ > most_) most_ = full_ + used_;
    return piece;
  }

  void reset() override {
    full_ = 0;
    used_ = 0;
    use(0);
  }

  size_t most() const { return most_; }

 private:
  static constexpr size_t kMaxBlocks = 32;

  bool add(size_t size) {
    uint8_t* const data = count_ == kMaxBlocks ? nullptr : platform_.allocate(size, 0);
    if (data == nullptr) return false;
    blocks_[count_] = etx::Span<uint8_t>(data, size);
    total_ += size;
    use(count_++);
    return true;
  }

  void use(size_t index) {
    full_ += used_;
    used_ = 0;
    current_ = index;
    base_ = blocks_[index].data();
    size_ = blocks_[index].size();
  }

  Platform& platform_;
  etx::Span<uint8_t> blocks_[kMaxBlocks];
  size_t count_ = 0, current_ = 0, total_ = 0, full_ = 0, most_ = 0;
};

class Runner {
 public:
  Runner(Platform& platform, const Options& options)
      : platform_(platform), options_(options), failures_(platform) {}

  int run(const etx::Registry& registry) {
    size_t size = 0;
    const uint8_t* const file = read_file(options_.model, size);
    if (file == nullptr) return 1;
    if (etx::Bundle::has_identifier(file, size)) return verify({file, size}, registry);
    return with_program({file, size}, [&](const etx::Program& program) {
      return with_method(program, options_.method, registry, [&](etx::Method& method) {
        if (!bind_outputs(method)) return 1;
        for (int32_t i = 0; i < options_.iterations; ++i) {
          if (!set_inputs(method)) return 1;
          if (method.execute() != Error::Ok) return failures_.print(method.last_failure());
        }
        return write_outputs(method) ? 0 : 1;
      });
    });
  }

 private:
  int fail(const char* what, const char* name) {
    Text line;
    line << "etx-run: " << what << ": " << name << "\n";
    platform_.print(line.c_str());
    return 1;
  }

  template <typename Use>
  int with_program(etx::Span<const uint8_t> bytes, const Use& use) {
    const etx::BufferDataLoader loader(bytes.data(), bytes.size());
    const auto program = etx::Program::load(&loader, etx::Program::Verification::Full, &failures_);
    if (!program.ok()) return fail("the program cannot be loaded", options_.model);
    return use(*program);
  }

  template <typename Use>
  int with_method(const etx::Program& program, const char* name, const etx::Registry& registry,
                  const Use& use) {
    const auto meta = program.method_meta(name);
    if (!meta.ok()) return fail("the program has no method", name);
    etx::Span<uint8_t> arenas[kMaxArenas];
    const size_t count = meta->num_memory_planned_buffers();
    if (count > kMaxArenas) return fail("the method has too many arenas", name);
    for (size_t i = 0; i < count; ++i) {
      if (!allocate(*meta->memory_planned_buffer_size(i), i + 1, arenas[i])) return 1;
    }
    etx::Span<uint8_t> trace, values;
    if (options_.etdump != nullptr) {
      if (!allocate(static_cast<size_t>(options_.trace_bytes), 1, trace)) return 1;
      if (!allocate(static_cast<size_t>(options_.value_bytes), 0, values)) return 1;
    }
    etx::ETDumpGen dump(trace);
    record_values(dump, values);
    GrowingMemory method_memory(platform_, meta->required_bytes());
    GrowingMemory temp_memory(platform_, static_cast<size_t>(options_.temp));
    etx::HierarchicalAllocator planned(etx::Span<etx::Span<uint8_t>>(arenas, count));
    etx::MemoryManager memory(&method_memory, &planned, &temp_memory);
    etx::EventTracer* const tracer = options_.etdump == nullptr ? nullptr : &dump;
    auto method = program.load_method(name, &memory, registry, tracer, nullptr, &failures_);
    if (!method.ok()) return fail("the method cannot be loaded", name);
    const int code = use(*method);
    if (tracer != nullptr && !write_dump(dump, values)) return 1;
    if (code != 0) return code;
    print_memory("method", method_memory.most());
    print_memory("temp", temp_memory.most());
    return 0;
  }

  void record_values(etx::ETDumpGen& dump, etx::Span<uint8_t> memory) {
    if (options_.values == nullptr) return;
    const bool outputs = same(options_.values, "outputs");
    const auto which = outputs ? etx::ETDumpGen::Values::Outputs : etx::ETDumpGen::Values::All;
    if (same(options_.values, "stats")) {
      dump.set_statistics(which);
    } else {
      dump.set_debug_buffer(memory, which);
    }
  }

  /// What was recorded, also of a call that failed.
  bool write_dump(etx::ETDumpGen& dump, etx::Span<uint8_t> values) {
    const etx::Span<const uint8_t> bytes = dump.get_etdump_data();
    print_memory("recorded", bytes.size());
    if (dump.missing_events() + dump.missing_values() != 0) {
      print_memory("--trace-bytes for all", static_cast<size_t>(dump.required_bytes()));
      print_memory("--value-bytes for all", static_cast<size_t>(dump.required_debug_bytes()));
    }
    if (bytes.empty()) return fail("--trace-bytes is too small", options_.etdump) == 0;
    Text path;
    path << options_.etdump << ".bin";
    const bool has_values = dump.debug_bytes() != 0;
    if (!platform_.write(options_.etdump, bytes.data(), bytes.size()) ||
        (has_values && !platform_.write(path.c_str(), values.data(), dump.debug_bytes()))) {
      return fail("what was recorded cannot be written", options_.etdump) == 0;
    }
    return true;
  }

  /// Runs the test cases of a bundle; each begins with the initial values of buffers.
  int verify(etx::Span<const uint8_t> file, const etx::Registry& registry) {
    const auto bundle = etx::Bundle::open(file, &failures_);
    if (!bundle.ok()) return fail("the bundle cannot be read", options_.model);
    int failed = 0;
    const int code = with_program(bundle->program(), [&](const etx::Program& program) {
      for (size_t suite = 0; suite < bundle->num_suites(); ++suite) {
        const char* const name = bundle->method_name(suite);
        const int done = with_method(program, name, registry, [&](etx::Method& method) {
          if (!bind_outputs(method)) return 1;
          for (size_t i = 0; i < bundle->num_cases(suite); ++i) {
            failed += verify_case(*bundle, suite, i, method);
          }
          return 0;
        });
        if (done != 0) return done;
      }
      return 0;
    });
    if (code != 0) return code;
    platform_.print(failed == 0 ? "all outputs are as expected\n" : "not as expected\n");
    return failed == 0 ? 0 : 1;
  }

  static void print_number(Text& line, const double (&number)[2]) {
    line.decimal(number[0]);
    if (number[1] == 0) return;
    line << " and ";
    line.decimal(number[1]) << "i";
  }

  /// Returns how many outputs are not as expected.
  int verify_case(const etx::Bundle& bundle, size_t suite, size_t index, etx::Method& method) {
    Text place;
    place << bundle.method_name(suite) << ", case " << static_cast<int64_t>(index);
    if (method.reset_state() != Error::Ok || bundle.set_inputs(suite, index, method) != Error::Ok ||
        method.execute() != Error::Ok) {
      return failures_.print(method.last_failure(), place.c_str());
    }
    const size_t count = bundle.num_expected(suite, index);
    if (count != 0 && count != method.outputs_size()) {
      return fail("another number of outputs than expected", place.c_str());
    }
    int failed = 0;
    for (size_t i = 0; i < count; ++i) {
      const etx::Verdict verdict =
          bundle.compare(suite, index, i, method.get_output(i), options_.tolerance);
      failed += verdict.passed ? 0 : 1;
      Text line;
      line << place.c_str() << ", output " << static_cast<int64_t>(i);
      line << (verdict.passed ? ": passed" : ": FAILED");
      if (verdict.reason != nullptr) line << ": " << verdict.reason;
      if (verdict.worst >= 0) line << ", " << verdict.different << " off";
      if (verdict.has_numbers) {
        line << ", max abs ";
        line.decimal(verdict.max_absolute) << ", max rel ";
        line.decimal(verdict.max_relative) << " at " << verdict.worst << ": ";
        print_number(line, verdict.got);
        line << ", expected ";
        print_number(line, verdict.expected);
      }
      line << "\n";
      platform_.print(line.c_str());
    }
    return failed;
  }

  void print_memory(const char* name, size_t size) {
    Text line;
    line << name << ": " << static_cast<int64_t>(size) << " bytes\n";
    platform_.print(line.c_str());
  }

  bool allocate(size_t size, size_t memory_id, etx::Span<uint8_t>& bytes) {
    const char* const name = platform_.memory_name(memory_id);
    uint8_t* const data = platform_.allocate(size, memory_id);
    bytes = etx::Span<uint8_t>(data, size);
    Text line;
    if (data == nullptr && size != 0) {
      line << "etx-run: " << name << " has no room for " << static_cast<int64_t>(size)
           << " bytes\n";
      platform_.print(line.c_str());
      return false;
    }
    if (memory_id != 0) {
      line << "arena " << static_cast<int64_t>(memory_id) << " in " << name;
      print_memory(line.c_str(), size);
    }
    return true;
  }

  const uint8_t* read_file(const char* path, size_t& size) {
    const int64_t found = platform_.file_size(path);
    size = static_cast<size_t>(found);
    etx::Span<uint8_t> bytes;
    if (found < 0 || !allocate(size, 0, bytes) || !platform_.read(path, bytes.data(), size)) {
      fail("the file cannot be read", path);
      return nullptr;
    }
    return bytes.data();
  }

  bool bind_outputs(etx::Method& method) {
    const etx::MethodMeta meta = method.method_meta();
    for (size_t i = 0; i < meta.num_outputs(); ++i) {
      const auto info = meta.output_tensor_meta(i);
      if (!info.ok() || info->nbytes() == 0) continue;
      if (method.get_output(i).to_tensor().const_data_ptr() != nullptr) continue;
      etx::Span<uint8_t> bytes;
      if (!allocate(info->nbytes(), 0, bytes)) return false;
      if (method.set_output_data_ptr(bytes.data(), bytes.size(), i) != Error::Ok) {
        return failures_.print(method.last_failure(), "an output cannot be bound") == 0;
      }
    }
    return true;
  }

  /// The shape that --shape gives the tensor input `index`, else its largest.
  bool shape_of(const etx::TensorInfo& info, size_t index, int32_t* sizes) {
    const size_t rank = info.sizes().size();
    for (size_t d = 0; d < rank; ++d) sizes[d] = info.sizes()[d];
    if (index >= options_.num_shapes) return true;
    const char* text = options_.shapes[index];
    for (size_t d = 0; d < rank; ++d) {
      text = read_number(text, sizes[d]);
      if (text == nullptr || *text != (d + 1 < rank ? ',' : '\0')) return false;
      ++text;
    }
    return true;
  }

  bool set_inputs(etx::Method& method) {
    const etx::MethodMeta meta = method.method_meta();
    size_t tensors = 0;
    for (size_t i = 0; i < meta.num_inputs(); ++i) {
      const auto info = meta.input_tensor_meta(i);
      if (!info.ok()) continue;
      if (tensors == options_.num_inputs) return fail("too few --input for", meta.name()) == 0;
      if (!set_input(method, *info, i, tensors++)) return false;
    }
    if (tensors != options_.num_inputs) return fail("too many --input for", meta.name()) == 0;
    return true;
  }

  bool set_input(etx::Method& method, const etx::TensorInfo& info, size_t index, size_t file) {
    int32_t sizes[etx::kMaxRank];
    int32_t strides[etx::kMaxRank];
    if (!shape_of(info, file, sizes)) return fail("wrong --shape", options_.shapes[file]) == 0;
    const etx::Span<const int32_t> shape(sizes, info.sizes().size());
    if (method.resize_input(index, info.scalar_type(), shape) != Error::Ok) {
      return failures_.print(method.last_failure(), options_.inputs[file]) == 0;
    }
    etx::TensorImpl given = *method.get_input(index).to_tensor().impl();
    given.sizes = sizes;
    given.strides = strides;
    etx::Tensor::set_strides(given);
    const size_t nbytes = etx::Tensor(&given).nbytes();
    if (platform_.file_size(options_.inputs[file]) != static_cast<int64_t>(nbytes)) {
      Text text;
      text << "the file must have " << static_cast<int64_t>(nbytes) << " bytes";
      return fail(text.c_str(), options_.inputs[file]) == 0;
    }
    if (buffers_[file].size() != nbytes && !allocate(nbytes, 0, buffers_[file])) return false;
    if (!platform_.read(options_.inputs[file], buffers_[file].data(), nbytes)) {
      return fail("the file cannot be read", options_.inputs[file]) == 0;
    }
    given.data = buffers_[file].data();
    if (method.set_input(etx::EValue(&given), index) == Error::Ok) return true;
    return failures_.print(method.last_failure(), options_.inputs[file]) == 0;
  }

  bool write_outputs(const etx::Method& method) {
    for (size_t i = 0; i < method.outputs_size(); ++i) {
      const etx::EValue& value = method.get_output(i);
      Text line;
      line << "output " << static_cast<int64_t>(i) << ":";
      if (value.is_int()) line << " " << value.to_int();
      if (value.is_bool()) line << (value.to_bool() ? " true" : " false");
      if (value.is_tensor() && !write_output(value.to_tensor(), i, line)) return false;
      line << "\n";
      platform_.print(line.c_str());
    }
    return true;
  }

  bool write_output(const etx::Tensor& tensor, size_t index, Text& line) {
    line << " " << etx::to_string(tensor.scalar_type()) << "[";
    for (etx::ssize_t d = 0; d < tensor.dim(); ++d) line << (d == 0 ? "" : ", ") << tensor.size(d);
    line << "]";
    if (options_.output == nullptr) return true;
    Text path;
    path << options_.output << static_cast<int64_t>(index) << ".bin";
    line << " -> " << path.c_str();
    if (platform_.write(path.c_str(), tensor.const_data_ptr(), tensor.nbytes())) return true;
    fail("the output cannot be written", path.c_str());
    return false;
  }

  Platform& platform_;
  const Options& options_;
  Failures failures_;
  etx::Span<uint8_t> buffers_[kMaxInputs];
};

}  // namespace

int run(int argc, const char* const* argv, Platform& platform, const etx::Registry& registry) {
  Options options;
  if (!parse(argc, argv, options)) {
    platform.print(kUsage);
    return 2;
  }
  return Runner(platform, options).run(registry);
}

}  // namespace etx_run
