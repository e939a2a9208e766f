// SPDX-License-Identifier: BSD-3-Clause
// test_loaders <program.pte> <folder>: files, mappings and descriptors, and what goes wrong.
#include <etx/hosted/log.h>
#include <etx/hosted/module.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

using etx::DataLoader;
using etx::Error;
using etx::FileDataLoader;
using etx::LoadedProgram;
using etx::MmapDataLoader;

const DataLoader::SegmentInfo kInfo;

std::string read(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  CHECK(file != nullptr);
  std::string bytes(1 << 16, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

/// A file with `bytes` at `offset`, sparse before and with rubbish behind.
int write(const std::string& path, const std::string& bytes, off_t offset) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 &&
        ::pwrite(file, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size()));
  CHECK(::pwrite(file, "rubbish", 7, offset + static_cast<off_t>(bytes.size())) == 7);
  return file;
}

bool loads(int file, uint64_t offset, uint64_t size, bool use_mmap) {
  LoadedProgram::Options options;
  options.use_mmap = use_mmap;
  etx::ErrorText error;
  return LoadedProgram::from_descriptor(file, offset, size, options, &error) != nullptr;
}

/// Programs within a file: at odd offsets, and beyond 2 and 4 GB.
void parts(const std::string& folder, const std::string& bytes) {
  for (const off_t offset : {off_t{0}, off_t{16}, off_t{4099}, off_t{3} << 30, off_t{5} << 30}) {
    const std::string path = folder + "/part";
    const int file = write(path, bytes, offset);
    const auto begin = static_cast<uint64_t>(offset);
    for (const bool use_mmap : {false, true}) {
      CHECK(loads(file, begin, bytes.size(), use_mmap));
      CHECK(loads(file, begin, 0, use_mmap));
      CHECK(!loads(file, begin + bytes.size(), 8, use_mmap));
      CHECK(!loads(file, begin + bytes.size() + 8, 0, use_mmap));
      CHECK(!loads(file, UINT64_MAX - 7, 16, use_mmap));
      CHECK(!loads(file, 0, UINT64_MAX, use_mmap));
    }
    CHECK(::lseek(file, 0, SEEK_CUR) == 0);
    ::close(file);
    ::unlink(path.c_str());
  }
}

/// A loader keeps a descriptor of its own.
void closed(const std::string& folder, const std::string& bytes) {
  std::string message;
  const int file = write(folder + "/closed", bytes, 0);
  const auto loader = FileDataLoader::from_descriptor(file, 0, 0, &message);
  const auto mapped = MmapDataLoader::from_descriptor(file, 16, 16, &message);
  ::close(file);
  CHECK(loader != nullptr && etx::Program::load(loader.get()).ok());
  CHECK(mapped != nullptr && *mapped->size() == 16);
  CHECK(std::memcmp(mapped->load(0, 16, kInfo)->data(), bytes.data() + 16, 16) == 0);
  CHECK(mapped->load(1, 16, kInfo).error() == Error::InvalidArgument);
  CHECK(mapped->load(SIZE_MAX, 2, kInfo).error() == Error::InvalidArgument);
  CHECK(MmapDataLoader::from_descriptor(file, 0, 0, &message) == nullptr);
  CHECK(message.find("descriptor " + std::to_string(file) + ": ") == 0);
}

void shrinks(const std::string& folder, const std::string& bytes) {
  std::string message;
  const std::string path = folder + "/shrinks";
  const int file = write(path, bytes, 0);
  const auto loader = FileDataLoader::from(path, &message);
  CHECK(loader != nullptr && loader->load(64, 64, kInfo).ok());
  CHECK(::ftruncate(file, 100) == 0);
  CHECK(loader->load(64, 64, kInfo).error() == Error::AccessFailed);
  CHECK(loader->load(64, 36, kInfo).ok());
  CHECK(etx::Program::load(loader.get()).error() == Error::AccessFailed);
  ::close(file);
}

void no_files(const std::string& folder) {
  std::string message;
  const std::string pipe = folder + "/pipe";
  CHECK(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {folder, pipe, folder + "/none"}) {
    CHECK(FileDataLoader::from(path, &message) == nullptr && message.find(path + ": ") == 0);
    CHECK(MmapDataLoader::from(path, &message) == nullptr && message.find(path + ": ") == 0);
  }
  int ends[2];
  CHECK(::pipe(ends) == 0);
  CHECK(FileDataLoader::from_descriptor(ends[0], 0, 0, &message) == nullptr);
  CHECK(message.find("not a regular file") != std::string::npos);
  CHECK(FileDataLoader::from_descriptor(-1, 0, 0, &message) == nullptr);
  const int empty = ::open((folder + "/empty").c_str(), O_RDWR | O_CREAT, 0600);
  CHECK(!loads(empty, 0, 0, false) && !loads(empty, 0, 0, true));
  ::close(empty);
}

struct Offline final : DataLoader {
  virtual ~Offline() = default;
  etx::Result<etx::FreeableBuffer> load(size_t, size_t, const SegmentInfo&) const override {
    return Error::AccessFailed;
  }
  etx::Result<size_t> size() const override { return Error::AccessFailed; }
};

/// A loader that has not even a size.
void offline() {
  std::string message;
  etx::ErrorText error;
  const auto loader = std::make_shared<const Offline>();
  CHECK(LoadedProgram::from_loader(loader, {}, &error) == nullptr);
  CHECK(error.error == Error::AccessFailed);
  CHECK(etx::PtdDataMap::from(loader, &message) == nullptr);
  CHECK(message == "its size is not known");
}

struct Short final : DataLoader {
  virtual ~Short() = default;
  etx::Result<etx::FreeableBuffer> load(size_t offset, size_t size,
                                        const SegmentInfo&) const override {
    const size_t given = std::min(size, limit);
    auto* copy = static_cast<char*>(std::aligned_alloc(16, (given + 16) / 16 * 16));
    std::memcpy(copy, bytes->data() + offset, given);
    return etx::FreeableBuffer(copy, given, [](void*, void* data, size_t) { std::free(data); });
  }
  etx::Result<size_t> size() const override { return bytes->size(); }
  const std::string* bytes = nullptr;
  size_t limit = 0;
};

/// A loader that gives fewer bytes than it was asked for.
void short_loads(const std::string& bytes) {
  Short loader;
  loader.bytes = &bytes;
  loader.limit = bytes.size();
  CHECK(etx::Program::load(&loader).ok());
  for (const size_t limit : {size_t{0}, size_t{63}, size_t{64}}) {
    loader.limit = limit;
    CHECK(etx::Program::load(&loader).error() == Error::AccessFailed);
    std::string message;
    const auto shared = std::make_shared<const Short>(loader);
    CHECK(etx::PtdDataMap::from(shared, &message) == nullptr);
  }
}

/// Signals that interrupt system calls, as long as a large file is read again and again.
void interrupted(const std::string& folder) {
  std::string message;
  const std::string bytes(size_t{32} << 20, 'x');
  ::close(write(folder + "/large", bytes, 0));
  const auto loader = FileDataLoader::from(folder + "/large", &message);
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  CHECK(loader != nullptr && ::sigaction(SIGUSR1, &action, nullptr) == 0);
  const pthread_t reader = ::pthread_self();
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) ::pthread_kill(reader, SIGUSR1);
  });
  for (int i = 0; i < 5; ++i) {
    const auto buffer = loader->load(0, bytes.size(), kInfo);
    CHECK(buffer.ok() && std::memcmp(buffer->data(), bytes.data(), bytes.size()) == 0);
  }
  done = true;
  other.join();
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 3);
  etx::set_log_level(ETX_LOG_FATAL);
  std::string folder = std::string(arguments[2]) + "/loadersXXXXXX";
  CHECK(::mkdtemp(folder.data()) != nullptr);
  const std::string bytes = read(arguments[1]);
  parts(folder, bytes);
  closed(folder, bytes);
  shrinks(folder, bytes);
  no_files(folder);
  interrupted(folder);
  offline();
  short_loads(bytes);
  etx::ErrorText error;
  auto own = std::make_shared<const etx::BufferDataLoader>(bytes.data(), size_t{0});
  CHECK(LoadedProgram::from_loader(own, {}, &error) == nullptr && !error.message.empty());
  return 0;
}
