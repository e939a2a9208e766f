// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/loaders.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "../platform/os.h"

namespace etx {

std::unique_ptr<MmapDataLoader> MmapDataLoader::from(const std::string& path,
                                                     std::string* message) {
  void* data = nullptr;
  size_t size = 0;
  if (!os::map_file(path, &data, &size, message)) return nullptr;
  return std::unique_ptr<MmapDataLoader>(new MmapDataLoader(data, size));
}

MmapDataLoader::~MmapDataLoader() { os::unmap_file(data_, size_); }

Result<FreeableBuffer> MmapDataLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  if (offset > size_ || size > size_ - offset) return Error::InvalidArgument;
  return FreeableBuffer(static_cast<const uint8_t*>(data_) + offset, size, nullptr);
}

struct FileDataLoader::File {
  std::FILE* stream;
  std::mutex mutex;
};

FileDataLoader::FileDataLoader(std::unique_ptr<File> file, size_t size)
    : file_(std::move(file)), size_(size) {}

FileDataLoader::~FileDataLoader() { std::fclose(file_->stream); }

std::unique_ptr<FileDataLoader> FileDataLoader::from(const std::string& path,
                                                     std::string* message) {
  std::FILE* stream = std::fopen(path.c_str(), "rb");
  const bool can_seek = stream != nullptr && std::fseek(stream, 0, SEEK_END) == 0;
  const long size = can_seek ? std::ftell(stream) : -1;
  if (size < 0) {
    *message = path + ": " + std::strerror(errno);
    if (stream != nullptr) std::fclose(stream);
    return nullptr;
  }
  auto file = std::make_unique<File>();
  file->stream = stream;
  return std::unique_ptr<FileDataLoader>(
      new FileDataLoader(std::move(file), static_cast<size_t>(size)));
}

Result<FreeableBuffer> FileDataLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  if (offset > size_ || size > size_ - offset) return Error::InvalidArgument;
  constexpr size_t kAlignment = 64;
  const size_t room = (size + kAlignment) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, room);
  if (data == nullptr) return Error::MemoryAllocationFailed;
  FreeableBuffer buffer(data, size, [](void*, void* bytes, size_t) { std::free(bytes); });
  const std::lock_guard<std::mutex> lock(file_->mutex);
  if (std::fseek(file_->stream, static_cast<long>(offset), SEEK_SET) != 0 ||
      std::fread(data, 1, size, file_->stream) != size) {
    return Error::AccessFailed;
  }
  return buffer;
}

}  // namespace etx
