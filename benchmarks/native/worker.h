// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_BENCHMARKS_WORKER_H_
#define ETX_BENCHMARKS_WORKER_H_

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

/// The measuring half of a benchmark process, the same for every runtime.
///
/// usage: worker MODEL.pte INPUTS.txt [LIBRARY...]
/// INPUTS.txt holds a line an input: `dtype rank size... file`, the file its raw bytes.
/// Commands on standard input: `load`, `run N`, `memory`. Each answers with one line of JSON.
/// `run` makes two calls that are not counted, then takes N times of a call, in nanoseconds. Where
/// the second call took less than kShort, each is the mean of kBlock calls: else reading the clock
/// would be a part of what is measured.
namespace bench {

constexpr int64_t kShort = 10000;
constexpr int kBlock = 100;

struct Input {
  int dtype = 0;
  std::vector<int32_t> sizes;
  std::vector<char> bytes;
};

inline std::vector<Input> read_inputs(const char* path) {
  std::vector<Input> inputs;
  std::ifstream list(path);
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    Input input;
    size_t rank = 0;
    words >> input.dtype >> rank;
    input.sizes.resize(rank);
    for (int32_t& size : input.sizes) words >> size;
    std::string file;
    words >> file;
    std::ifstream data(file, std::ios::binary);
    input.bytes.assign(std::istreambuf_iterator<char>(data), {});
    inputs.push_back(std::move(input));
  }
  return inputs;
}

inline void check(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

inline int64_t now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Kilobytes of a line of /proc/self/status, such as VmHWM.
inline long status_kb(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0)
      return std::strtol(line.c_str() + std::strlen(name) + 1, nullptr, 10);
  }
  return -1;
}

/// A call binds the inputs again: where they are planned, their memory is reused during a run.
template <typename Runner>
void call(Runner& runner, std::vector<Input>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
}

/// Nanoseconds a call takes, the mean of `count`.
template <typename Runner>
double time_calls(Runner& runner, std::vector<Input>& inputs, int count) {
  const int64_t begin = now();
  for (int i = 0; i < count; ++i) call(runner, inputs);
  return static_cast<double>(now() - begin) / count;
}

/// `Runner`: constructed from the libraries to load, which is not timed; load(path),
/// set_input(index, Input&) and run() exit through check() on failure.
template <typename Runner>
int serve(int argc, char** argv) {
  check(argc >= 3, "usage: worker MODEL.pte INPUTS.txt [LIBRARY...]");
  std::vector<Input> inputs = read_inputs(argv[2]);
  Runner runner(std::vector<std::string>(argv + 3, argv + argc));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "load") {
      const int64_t begin = now();
      runner.load(argv[1]);
      const int64_t loaded = now();
      call(runner, inputs);
      std::cout << "{\"load\": " << loaded - begin << ", \"first\": " << now() - loaded << "}";
    } else if (command == "run") {
      int count = 1;
      words >> count;
      call(runner, inputs);
      const int block = time_calls(runner, inputs, 1) < kShort ? kBlock : 1;
      std::cout << "{\"run\": [";
      for (int i = 0; i < count; ++i) {
        std::cout << (i != 0 ? ", " : "") << time_calls(runner, inputs, block);
      }
      std::cout << "]}";
    } else if (command == "memory") {
      std::cout << "{\"peak_kb\": " << status_kb("VmHWM:")
                << ", \"resident_kb\": " << status_kb("VmRSS:")
                << ", \"anonymous_kb\": " << status_kb("RssAnon:") << "}";
    }
    std::cout << std::endl;
  }
  return 0;
}

}  // namespace bench

#endif  // ETX_BENCHMARKS_WORKER_H_
