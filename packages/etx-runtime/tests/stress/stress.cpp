// SPDX-License-Identifier: BSD-3-Clause
// stress_threads <folder> <seconds or what to plant> <plugin>...: eight threads on one program, a
// method each, among others that do all that may be done meanwhile. For ThreadSanitizer.
#include "stress.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace stress {
namespace {

struct Reader {
  std::FILE* file;

  void read(void* data, size_t size) { CHECK(std::fread(data, 1, size, file) == size); }
  int32_t number() {
    int32_t value;
    read(&value, sizeof(value));
    CHECK(value >= 0);
    return value;
  }
  std::vector<float> floats(size_t count) {
    std::vector<float> values(count);
    read(values.data(), count * sizeof(float));
    return values;
  }
  Sample sample() {
    Sample sample;
    size_t count = 1;
    for (int32_t rank = number(); rank > 0; --rank) {
      sample.sizes.push_back(number());
      count *= static_cast<size_t>(sample.sizes.back());
    }
    sample.input = floats(count);
    sample.output = floats(static_cast<size_t>(number()));
    return sample;
  }
};

std::vector<Case> read_cases(const std::string& path) {
  Reader reader{std::fopen(path.c_str(), "rb")};
  CHECK(reader.file != nullptr);
  std::vector<Case> cases(static_cast<size_t>(reader.number()));
  for (Case& one : cases) {
    one.method.resize(static_cast<size_t>(reader.number()));
    reader.read(&one.method[0], one.method.size());
    for (int32_t left = reader.number(); left > 0; --left) one.samples.push_back(reader.sample());
    CHECK(!one.samples.empty());
  }
  std::fclose(reader.file);
  return cases;
}

void run(Stage& stage, double seconds) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) threads.emplace_back(execute_cases, std::ref(stage), i);
  for (const Work work : kDisturbances) threads.emplace_back(work, std::ref(stage));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stage.stop = true;
  for (std::thread& thread : threads) thread.join();
  const std::pair<const char*, uint64_t> counts[] = {
      {"loads", stage.loads},     {"executions", stage.executions}, {"cancelled", stage.cancelled},
      {"refused", stage.refused}, {"helped", stage.helped},         {"heard", stage.heard}};
  for (const auto& [name, count] : counts) {
    std::printf("%s %llu\n", name, static_cast<unsigned long long>(count));
    CHECK(count > 0);
  }
}

}  // namespace
}  // namespace stress

int main(int argc, char** argv) {
  CHECK(argc >= 4);
  stress::Stage stage;
  stage.folder = argv[1];
  stage.plugins.assign(argv + 3, argv + argc);
  for (const std::string& path : stage.plugins) {
    std::string message;
    const bool is_loaded = etx::Plugins::shared().load(path, &message) != nullptr;
    if (!is_loaded) std::fprintf(stderr, "%s\n", message.c_str());
    CHECK(is_loaded);
  }
  stage.cases = stress::read_cases(stage.folder + "/threads.cases");
  stage.program = stress::open(stage, true);
  const double seconds = std::atof(argv[2]);
  if (seconds > 0) {
    stress::run(stage, seconds);
  } else {
    stress::plant(stage, argv[2]);
  }
  return 0;
}
