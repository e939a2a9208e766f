// SPDX-License-Identifier: BSD-3-Clause
// test_method <counter.pte> <plugin>: runs a program through the core and through Module. Built
// with RTTI and exceptions, so it also shows that such code may subclass the core's interfaces.
#include <etx/hosted/module.h>

#include <cstring>
#include <vector>

#include "check.h"

namespace {

struct Sink final : etx::FailureSink {
  void report(const etx::Failure& failure) override {
    last = failure;
    ++count;
  }
  virtual ~Sink() = default;
  etx::Failure last;
  int count = 0;
};

struct Tracer final : etx::EventTracer {
  void load(const char*, etx::Error, uint64_t, uint64_t) override {}
  void begin_execution(const char* method) override { CHECK(std::strcmp(method, "forward") == 0); }
  void event(const etx::TraceEvent& event) override {
    CHECK(event.start <= event.end);
    names.push_back(event.name);
  }
  void delegate_event(const etx::DelegateEvent&) override {}
  void allocation(uint32_t, uint64_t) override {}
  void end_execution(uint64_t start, uint64_t end) override { CHECK(start <= end); }
  void output(uint32_t, const etx_value&) override {}
  virtual ~Tracer() = default;
  std::vector<std::string> names;
};

struct Loader final : etx::DataLoader {
  explicit Loader(std::vector<uint8_t> data) : bytes(std::move(data)) {}
  virtual ~Loader() = default;
  etx::Result<etx::FreeableBuffer> load(size_t offset, size_t size,
                                        const SegmentInfo&) const override {
    if (offset + size > bytes.size()) return etx::Error::InvalidArgument;
    void* copy = std::aligned_alloc(64, (size + 64) / 64 * 64);
    std::memcpy(copy, bytes.data() + offset, size);
    return etx::FreeableBuffer(copy, size, [](void*, void* data, size_t) { std::free(data); });
  }
  etx::Result<size_t> size() const override { return bytes.size(); }
  std::vector<uint8_t> bytes;
};

struct Array {
  float value;
  int32_t size = 1, stride = 1;
  uint8_t order = 0;
  etx_tensor raw;
  explicit Array(float v) : value(v), raw{&value, &size, &stride, &order, 1, 1, 6, 1, 0, 0, 0} {}
};

float output(const etx::Method& method) {
  return method.get_output(0).to_tensor().const_data_ptr<float>()[0];
}

std::vector<uint8_t> read(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  CHECK(file != nullptr);
  std::vector<uint8_t> bytes(1 << 16);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

void core(const char* path, const etx_plugin* plugin) {
  const Loader loader(read(path));
  Sink sink;
  auto program = etx::Program::load(&loader, etx::Program::Verification::Full, &sink);
  CHECK(program.ok() && sink.count == 0);
  const etx::MethodMeta meta = *program->method_meta("forward");
  std::vector<uint8_t> small(meta.required_bytes() / 2);
  std::vector<uint8_t> method_bytes(meta.required_bytes());
  std::vector<uint8_t> planned_bytes(*meta.memory_planned_buffer_size(0) + 16, 0xff);
  const size_t padding = (16 - reinterpret_cast<uintptr_t>(planned_bytes.data()) % 16) % 16;
  etx::Span<uint8_t> buffers[] = {{planned_bytes.data() + padding, planned_bytes.size() - 16}};
  etx::HierarchicalAllocator planned{etx::Span<etx::Span<uint8_t>>(buffers)};

  etx::MemoryAllocator small_arena(small.size(), small.data());
  etx::MemoryManager too_small(&small_arena, &planned);
  const etx_plugin* plugins[] = {plugin};
  const etx::Registry registry{etx::Span<const etx_plugin* const>(plugins)};
  auto refused = program->load_method("forward", &too_small, registry, nullptr, nullptr, &sink);
  CHECK(refused.error() == etx::Error::MemoryAllocationFailed && sink.count == 1);

  etx::MemoryAllocator none_arena(method_bytes.size(), method_bytes.data());
  etx::MemoryManager memory(&none_arena, &planned);
  auto missing = program->load_method("forward", &memory, etx::Registry(), nullptr, nullptr, &sink);
  CHECK(missing.error() == etx::Error::OperatorMissing && sink.count == 3);
  CHECK(std::strcmp(sink.last.name, "aten::copy_") == 0);

  none_arena.reset();
  Tracer tracer;
  auto method = program->load_method("forward", &memory, registry, &tracer, nullptr, &sink);
  CHECK(method.ok() && sink.count == 3);
  // The bound is exact except for the alignment of an arena that begins anywhere.
  CHECK(none_arena.used_size() <= meta.required_bytes());
  CHECK(none_arena.used_size() + etx::MemoryAllocator::kDefaultAlignment >= meta.required_bytes());
  Array x(1);
  CHECK(method->set_input(etx::EValue(&x.raw), 0) == etx::Error::Ok);
  CHECK(method->set_input(etx::EValue(&x.raw), 1) == etx::Error::InvalidArgument);
  CHECK(method->set_input(etx::EValue(int64_t{1}), 0) == etx::Error::InvalidArgument);
  CHECK(method->execute() == etx::Error::Ok && output(*method) == 6);
  CHECK(tracer.names == (std::vector<std::string>{"aten::add", "aten::copy_"}));
  method->set_tracer(nullptr);
  CHECK(method->reset_execution() == etx::Error::Ok);
  CHECK(method->step() == etx::Error::Ok && method->reset_execution() == etx::Error::InvalidState);
  CHECK(method->step() == etx::Error::Ok && method->step() == etx::Error::EndOfMethod);
  CHECK(output(*method) == 7 && method->reset_execution() == etx::Error::Ok);
  CHECK(method->reset_state() == etx::Error::Ok);
  CHECK(method->set_input(etx::EValue(&x.raw), 0) == etx::Error::Ok);
  CHECK(method->execute() == etx::Error::Ok && output(*method) == 6);
  CHECK(method->get_attribute("count").ok() && !method->get_attribute("other").ok());
  CHECK(method->set_output_data_ptr(&x, 4, 0) == etx::Error::InvalidState);
  CHECK(method->set_attribute_data_ptr(&x, 4, "count") == etx::Error::InvalidState);
  CHECK(method->set_attribute_data_ptr(&x, 4, "other") == etx::Error::NotFound);
}

void module(const char* path) {
  etx::Module model(path);
  Array x(2);
  auto outputs = model.forward({etx::EValue(&x.raw)});
  CHECK(outputs.ok() && (*outputs)[0].to_tensor().const_data_ptr<float>()[0] == 7);
  CHECK(!model.forward(std::vector<etx::EValue>()).ok());
  CHECK(model.last_error().message == "forward takes 1 input, got 0");
  CHECK(!model.execute("other", {}).ok());
  CHECK(model.last_error().message == "the program has no method 'other'; it has 'forward'");
  etx::Module nothing("/nonexistent.pte");
  CHECK(nothing.load() == etx::Error::AccessFailed && !nothing.method_names().ok());
}

void wrong_inputs(const char* path) {
  etx::ErrorText error;
  const auto program = etx::LoadedProgram::from_file(path, {}, &error);
  const auto loaded = etx::LoadedMethod::load(program, "forward", &error);
  CHECK(loaded != nullptr);
  const float x = 1;
  const int32_t size = 1;
  const int64_t stride = 1;
  const auto type = etx::ScalarType::Float;
  CHECK(!loaded->set_tensor(1, &x, type, {&size, 1}, {&stride, 1}, true, &error));
  CHECK(error.message == "there is no input 1: the method has 1");
  CHECK(!loaded->set_value(SIZE_MAX, etx::EValue(1.0), &error));
  CHECK(error.error == etx::Error::InvalidArgument);
}

void refused_plugins() {
  std::string message;
  etx_plugin plugin = {};
  plugin.abi_major = ETX_ABI_MAJOR;
  plugin.struct_size = sizeof(plugin) - 1;
  CHECK(!etx::Plugins::shared().add(&plugin, &message));
  CHECK(message.find("the plugin is broken: struct_size is ") == 0);
  plugin.abi_minor = ETX_ABI_MINOR + 1;
  CHECK(!etx::Plugins::shared().add(&plugin, &message));
  CHECK(message.find("upgrade etx-runtime") != std::string::npos);
}

void file_loader(const char* path) {
  std::string message;
  const auto loader = etx::FileDataLoader::from(path, &message);
  CHECK(loader != nullptr && etx::Program::load(loader.get()).ok());
  CHECK(etx::FileDataLoader::from("/nonexistent.pte", &message) == nullptr && !message.empty());
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 3);
  std::string message;
  const etx_plugin* plugin = etx::Plugins::shared().load(arguments[2], &message);
  CHECK(plugin != nullptr);
  core(arguments[1], plugin);
  module(arguments[1]);
  wrong_inputs(arguments[1]);
  refused_plugins();
  file_loader(arguments[1]);
  return 0;
}
