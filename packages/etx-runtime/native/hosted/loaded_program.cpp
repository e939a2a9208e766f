// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <cstring>

#include <etx/hosted/log.h>
#include <etx/hosted/module.h>

#include "describe.h"

namespace etx {
namespace {

ErrorText access_failed(const std::string& message) {
  ErrorText error;
  error.error = Error::AccessFailed;
  error.message = message;
  return error;
}

std::string label(const std::string& source) { return source.empty() ? "a program" : source; }

/// A file's bytes, read at once: what becomes of the file afterwards does not matter.
class ReadLoader final : public DataLoader {
 public:
  /// Null on failure, and `message` then says why.
  static std::shared_ptr<const DataLoader> read(std::unique_ptr<FileDataLoader> file,
                                                const std::string& source, std::string* message) {
    if (file == nullptr) return nullptr;
    auto bytes = file->load(0, *file->size(), {});
    if (bytes.ok()) return std::make_shared<const ReadLoader>(std::move(bytes.get()));
    const bool is_full = bytes.error() == Error::MemoryAllocationFailed;
    *message = source + ": " +
               (is_full ? "not enough memory to read it" : "it cannot be read, or became shorter");
    return nullptr;
  }

  explicit ReadLoader(FreeableBuffer bytes)
      : bytes_(std::move(bytes)), loader_(bytes_.data(), bytes_.size()) {}
  ~ReadLoader() = default;
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    return loader_.load(offset, size, info);
  }
  Result<size_t> size() const override { return loader_.size(); }

 private:
  FreeableBuffer bytes_;
  BufferDataLoader loader_;
};

std::shared_ptr<const DataLoader> open_file(const std::string& path, bool use_mmap,
                                            std::string* message) {
  if (use_mmap) return MmapDataLoader::from(path, message);
  return ReadLoader::read(FileDataLoader::from(path, message), path, message);
}

/// Logs `error` with its source, which it gets, too, when there is one.
bool refuse(const std::string& source, ErrorText* error) {
  log(ETX_LOG_INFO, label(source) + ": " + error->message);
  if (!source.empty()) error->message = source + ": " + error->message;
  return false;
}

}  // namespace

std::shared_ptr<LoadedProgram> LoadedProgram::from_file(const std::string& path,
                                                        const Options& options, ErrorText* error) {
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram());
  std::string message;
  loaded->loader_ = open_file(path, options.use_mmap, &message);
  if (loaded->loader_ != nullptr) return loaded->load(path, options, error) ? loaded : nullptr;
  *error = access_failed(message);
  log(ETX_LOG_INFO, message);
  return nullptr;
}

std::shared_ptr<LoadedProgram> LoadedProgram::from_descriptor(int descriptor, uint64_t offset,
                                                              uint64_t size, const Options& options,
                                                              ErrorText* error) {
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram());
  std::string message;
  const std::string source =
      "descriptor " + std::to_string(descriptor) + " from byte " + std::to_string(offset);
  if (options.use_mmap && offset % MemoryAllocator::kDefaultAlignment == 0) {
    loaded->loader_ = MmapDataLoader::from_descriptor(descriptor, offset, size, &message);
  } else {
    auto file = FileDataLoader::from_descriptor(descriptor, offset, size, &message);
    loaded->loader_ = ReadLoader::read(std::move(file), source, &message);
  }
  if (loaded->loader_ != nullptr) return loaded->load(source, options, error) ? loaded : nullptr;
  *error = access_failed(message);
  log(ETX_LOG_INFO, message);
  return nullptr;
}

std::shared_ptr<LoadedProgram> LoadedProgram::from_loader(std::shared_ptr<const DataLoader> loader,
                                                          const Options& options,
                                                          ErrorText* error) {
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram());
  loaded->loader_ = std::move(loader);
  return loaded->load("", options, error) ? loaded : nullptr;
}

std::shared_ptr<LoadedProgram> LoadedProgram::from_memory(const void* data, size_t size,
                                                          std::shared_ptr<void> owner,
                                                          const Options& options,
                                                          ErrorText* error) {
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram());
  loaded->owner_ = std::move(owner);
  if (reinterpret_cast<uintptr_t>(data) % MemoryAllocator::kDefaultAlignment != 0) {
    void* copy = std::malloc(size + 1);
    if (copy == nullptr) {
      error->error = Error::MemoryAllocationFailed;
      error->message = "not enough memory for a copy of the program";
      return nullptr;
    }
    std::memcpy(copy, data, size);
    loaded->owner_ = std::shared_ptr<void>(copy, std::free);
    data = copy;
  }
  loaded->loader_ = std::make_shared<const BufferDataLoader>(data, size);
  return loaded->load("", options, error) ? loaded : nullptr;
}

bool LoadedProgram::load(const std::string& source, const Options& options, ErrorText* error) {
  const uint64_t start = etx_pal_current_ticks();
  kernels_ = options.kernels;
  ErrorText text;
  if (!load_data(options, &text)) {
    *error = text;
    return refuse(source, error);
  }
  MessageSink failures;
  auto program = Program::load(loader_.get(), options.verification, &failures);
  if (!program.ok()) {
    *error = failures.text(program.error());
    if (program.error() == Error::AccessFailed) {
      error->message = "the file cannot be read, or has become shorter [" + error->message + "]";
    }
    return refuse(source, error);
  }
  program_ = std::make_unique<Program>(std::move(program.get()));
  if (is_logged(ETX_LOG_INFO)) {
    const auto size = loader_->size();
    log(ETX_LOG_INFO, label(source) + ": loaded " + std::to_string(size.ok() ? *size : 0) +
                          " bytes, " + counted(program_->num_methods(), "method") + ", in " +
                          std::to_string((etx_pal_current_ticks() - start) / 1000) + " us");
  }
  return true;
}

bool LoadedProgram::load_data(const Options& options, ErrorText* error) {
  std::vector<std::shared_ptr<const NamedDataMap>> maps;
  for (const std::string& path : options.data_paths) {
    std::string message;
    const std::shared_ptr<const DataLoader> file = open_file(path, options.use_mmap, &message);
    if (file != nullptr) {
      std::shared_ptr<const NamedDataMap> map = PtdDataMap::from(file, &message);
      if (map != nullptr) {
        maps.push_back(std::move(map));
        continue;
      }
      message = path + ": " + message;
    }
    *error = access_failed(message);
    if (file != nullptr) error->error = Error::InvalidExternalData;
    return false;
  }
  for (size_t i = 0; i < options.data_loaders.size(); ++i) {
    std::string message;
    std::shared_ptr<const NamedDataMap> map = PtdDataMap::from(options.data_loaders[i], &message);
    if (map == nullptr) {
      *error = access_failed("the .ptd data in memory: " + message);
      error->error = Error::InvalidExternalData;
      return false;
    }
    maps.push_back(std::move(map));
  }
  if (!maps.empty()) {
    std::string message;
    data_ = merge(std::move(maps), &message);
    if (data_ == nullptr) {
      *error = access_failed(message);
      error->error = Error::InvalidExternalData;
      return false;
    }
  }
  return true;
}

}  // namespace etx
