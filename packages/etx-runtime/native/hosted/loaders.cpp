// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/loaders.h>

#include <cstdlib>

#include "../platform/os.h"

namespace etx {
namespace {

/// A part of an open file, which belongs to this object.
struct Part {
  int file = -1;
  uint64_t begin = 0;
  uint64_t size = 0;
  ~Part() {
    if (file >= 0) os::close_file(file);
  }
};

/// Cuts the part down to `size` bytes from `offset`; 0: to the end.
bool cut(Part* part, uint64_t offset, uint64_t size, std::string* message) {
  const uint64_t end = part->size;
  if (offset > end || size > end - offset) {
    *message = "the part of " + std::to_string(size) + " bytes at offset " +
               std::to_string(offset) + " ends after the file of " + std::to_string(end) + " bytes";
    return false;
  }
  part->begin = offset;
  part->size = size == 0 ? end - offset : size;
  if (part->size > SIZE_MAX) *message = "the file is larger than the address space";
  return part->size <= SIZE_MAX;
}

bool open(const std::string& path, Part* part, std::string* message) {
  const bool is_open = os::open_file(path, &part->file, &part->size, message);
  if (is_open && cut(part, 0, 0, message)) return true;
  *message = path + ": " + *message;
  return false;
}

bool open(int descriptor, uint64_t offset, uint64_t size, Part* part, std::string* message) {
  const bool is_open = os::copy_file(descriptor, &part->file, &part->size, message);
  if (is_open && cut(part, offset, size, message)) return true;
  *message = "descriptor " + std::to_string(descriptor) + ": " + *message;
  return false;
}

}  // namespace

std::unique_ptr<MmapDataLoader> MmapDataLoader::from(const std::string& path,
                                                     std::string* message) {
  Part part;
  if (!open(path, &part, message)) return nullptr;
  void* mapping = nullptr;
  const auto size = static_cast<size_t>(part.size);
  if (!os::map_file(part.file, 0, size, &mapping, message)) {
    *message = path + ": " + *message;
    return nullptr;
  }
  return std::unique_ptr<MmapDataLoader>(new MmapDataLoader(mapping, size, 0));
}

std::unique_ptr<MmapDataLoader> MmapDataLoader::from_descriptor(int descriptor, uint64_t offset,
                                                                uint64_t size,
                                                                std::string* message) {
  Part part;
  if (!open(descriptor, offset, size, &part, message)) return nullptr;
  if (offset % 16 != 0) {
    *message = "descriptor " + std::to_string(descriptor) + ": offset " + std::to_string(offset) +
               " is not a multiple of 16 and cannot be mapped";
    return nullptr;
  }
  const uint64_t skipped = offset % os::map_granularity();
  const auto mapped = static_cast<size_t>(part.size + skipped);
  void* mapping = nullptr;
  if (!os::map_file(part.file, offset - skipped, mapped, &mapping, message)) {
    *message = "descriptor " + std::to_string(descriptor) + ": " + *message;
    return nullptr;
  }
  return std::unique_ptr<MmapDataLoader>(
      new MmapDataLoader(mapping, mapped, static_cast<size_t>(skipped)));
}

MmapDataLoader::~MmapDataLoader() { os::unmap_file(mapping_, mapped_); }

Result<FreeableBuffer> MmapDataLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  if (offset > size_ || size > size_ - offset) return Error::InvalidArgument;
  return FreeableBuffer(static_cast<const uint8_t*>(mapping_) + skipped_ + offset, size, nullptr);
}

std::unique_ptr<FileDataLoader> FileDataLoader::from(const std::string& path,
                                                     std::string* message) {
  Part part;
  if (!open(path, &part, message)) return nullptr;
  const int file = part.file;
  part.file = -1;
  return std::unique_ptr<FileDataLoader>(
      new FileDataLoader(file, 0, static_cast<size_t>(part.size)));
}

std::unique_ptr<FileDataLoader> FileDataLoader::from_descriptor(int descriptor, uint64_t offset,
                                                                uint64_t size,
                                                                std::string* message) {
  Part part;
  if (!open(descriptor, offset, size, &part, message)) return nullptr;
  const int file = part.file;
  part.file = -1;
  return std::unique_ptr<FileDataLoader>(
      new FileDataLoader(file, offset, static_cast<size_t>(part.size)));
}

FileDataLoader::~FileDataLoader() { os::close_file(file_); }

Result<FreeableBuffer> FileDataLoader::load(size_t offset, size_t size, const SegmentInfo&) const {
  if (offset > size_ || size > size_ - offset) return Error::InvalidArgument;
  constexpr size_t kAlignment = 64;
  if (size > SIZE_MAX - kAlignment) return Error::MemoryAllocationFailed;
  const size_t room = (size + kAlignment) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, room);
  if (data == nullptr) return Error::MemoryAllocationFailed;
  FreeableBuffer buffer(data, size, [](void*, void* bytes, size_t) { std::free(bytes); });
  if (!os::read_file(file_, begin_ + offset, data, size)) return Error::AccessFailed;
  return buffer;
}

}  // namespace etx
