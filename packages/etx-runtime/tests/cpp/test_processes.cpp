// SPDX-License-Identifier: BSD-3-Clause
// test_processes <library>: the thread pool and the log through fork, the pool
// through exit and dlclose, and what sizes it.
#include <dlfcn.h>
#include <etx/hosted/log.h>
#include <etx/hosted/thread_pool.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "processes.h"

namespace {

void add(void* user, int64_t begin, int64_t end) {
  auto& sum = *static_cast<std::atomic<int64_t>*>(user);
  for (int64_t i = begin; i < end; ++i) sum += i;
}

void sum_up(etx::ThreadPool& pool) {
  std::atomic<int64_t> sum{0};
  pool.parallel_for(0, 1000, 1, add, &sum);
  CHECK(sum == 1000 * 999 / 2);
}

/// Threads begin with the first use, end when the pool shrinks, and go with it.
void lifetimes() {
  const size_t before = count_threads();
  {
    etx::ThreadPool pool(4);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(0, 100, 100, add, &sum);
    CHECK(count_threads() == before);
    sum_up(pool);
    CHECK(count_threads() == before + 3);
    pool.resize(2);
    CHECK(count_threads() == before + 1);
    pool.resize(1 << 20);
    CHECK(pool.num_threads() == etx::ThreadPool::kMaxThreads);
  }
  CHECK(count_threads() == before);
}

/// A child has threads of its own, also when its parent's were at work.
void through_fork() {
  etx::ThreadPool& shared = etx::ThreadPool::shared();
  etx::ThreadPool own(3);
  shared.resize(4);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      sum_up(shared);
      sum_up(own);
    }
  });
  for (int i = 0; i < 30; ++i) {
    in_child([&] {
      CHECK(count_tasks() == 1);
      CHECK(shared.num_threads() == 4 && own.num_threads() == 3);
      sum_up(shared);
      sum_up(own);
      CHECK(count_tasks() == 6);
      own.resize(1);
      in_child([&] { sum_up(shared); });
    });
  }
  stop = true;
  busy.join();
}

std::atomic<bool> is_heard{false};
std::atomic<bool> may_return{false};

void linger(void*, etx_log_level, const char*) {
  is_heard = true;
  while (!may_return) usleep(100);
}

void count(void* user, etx_log_level, const char*) { ++*static_cast<int*>(user); }

void fork_and_log(void*, etx_log_level, const char* message) {
  if (message[0] != 'f') return;
  in_child([] { etx::log(ETX_LOG_ERROR, "within"); });
}

/// A child logs and takes another sink, also when its parent's was called meanwhile.
void log_through_fork() {
  CHECK(etx::set_log_sink(linger, nullptr) == etx::Error::Ok);
  std::thread logs([] { etx::log(ETX_LOG_ERROR, "lingers"); });
  while (!is_heard) usleep(100);
  in_child([] {
    int messages = 0;
    CHECK(etx::set_log_sink(count, &messages) == etx::Error::Ok);
    etx::log(ETX_LOG_ERROR, "of the child");
    CHECK(messages == 1 && etx::set_log_sink(nullptr, nullptr) == etx::Error::Ok);
  });
  may_return = true;
  logs.join();
  CHECK(etx::set_log_sink(fork_and_log, nullptr) == etx::Error::Ok);
  etx::log(ETX_LOG_ERROR, "forks");
  CHECK(etx::set_log_sink(nullptr, nullptr) == etx::Error::Ok);
}

/// A thread goes on while the process ends.
void through_exit() {
  in_child([] {
    std::thread([] {
      for (;;) sum_up(etx::ThreadPool::shared());
    }).detach();
    usleep(2000);
  });
}

/// Nothing of a library is left when it is unloaded.
void through_unloading(const char* path) {
  const size_t before = count_threads();
  for (int i = 0; i < 5; ++i) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    const auto use = reinterpret_cast<bool (*)()>(dlsym(library, "use_pool"));
    CHECK(use != nullptr && use());
    CHECK(count_threads() == before + 3);
    CHECK(dlclose(library) == 0);
    CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == nullptr);
    CHECK(count_threads() == before);
    in_child([] {});
  }
}

void write(const std::string& path, const char* text) { std::ofstream(path) << text; }

/// A folder that stands for the system's: groups at `group`, of which the outer has a quota.
std::string make_root(const char* name, const char* mounts, const char* groups) {
  const std::string root = (std::filesystem::current_path() / name).string();
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/proc/self");
  std::filesystem::create_directories(root + "/cg/pod/app");
  write(root + "/proc/self/mountinfo", mounts);
  write(root + "/proc/self/cgroup", groups);
  return root;
}

void quotas() {
  const uint32_t cores = etx::usable_cores();
  CHECK(cores >= 1 && cores <= std::thread::hardware_concurrency());
  CHECK(etx::usable_cores("/nowhere") >= cores);
  if (cores < 2) return;

  const char* v2 =
      "30 1 0:1 / /proc rw - proc proc rw\n31 1 0:26 / /cg rw shared:4 - cgroup2 c rw\n";
  std::string root = make_root("groups-v2", v2, "0::/pod/app\n");
  CHECK(etx::usable_cores(root.c_str()) == cores);
  write(root + "/cg/pod/app/cpu.max", "max 100000\n");
  CHECK(etx::usable_cores(root.c_str()) == cores);
  write(root + "/cg/pod/cpu.max", "50000 100000\n");
  CHECK(etx::usable_cores(root.c_str()) == 1);
  write(root + "/cg/pod/cpu.max", "110000 100000\n");
  CHECK(etx::usable_cores(root.c_str()) == 2);
  write(root + "/cg/pod/app/cpu.max", "1000 100000\n");
  CHECK(etx::usable_cores(root.c_str()) == 1);
  write(root + "/cg/pod/app/cpu.max", "nonsense");
  CHECK(etx::usable_cores(root.c_str()) == 2);

  const char* v1 = "40 1 0:27 /docker/1 /cg rw - cgroup cgroup rw,cpuacct,cpu\n41 x\n";
  root = make_root("groups-v1", v1, "5:memory:/m\n4:cpu,cpuacct:/docker/1/pod\nbroken\n0::/\n");
  write(root + "/cg/pod/cpu.cfs_quota_us", "-1\n");
  write(root + "/cg/pod/cpu.cfs_period_us", "100000\n");
  CHECK(etx::usable_cores(root.c_str()) == cores);
  write(root + "/cg/pod/cpu.cfs_quota_us", "90000\n");
  CHECK(etx::usable_cores(root.c_str()) == 1);
}

void environment() {
  etx::ThreadPool pool(0);
  setenv("ETX_NUM_THREADS", "7", 1);
  CHECK(pool.num_threads() == 7);
  for (const char* bad : {"0", "-1", "1025", "two", "2x", ""}) {
    setenv("ETX_NUM_THREADS", bad, 1);
    pool.resize(0);
    CHECK(pool.num_threads() == etx::usable_cores());
  }
  unsetenv("ETX_NUM_THREADS");
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  lifetimes();
  quotas();
  environment();
  through_exit();
  through_fork();
  log_through_fork();
  through_unloading(argv[1]);
  return 0;
}
