// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_LOADERS_H_
#define ETX_HOSTED_LOADERS_H_

#include <memory>
#include <string>
#include <vector>

#include <etx/loader.h>
#include <etx/named_data.h>

namespace etx {

/// A file mapped into memory: pages are read when touched, and shared between processes. Where
/// files cannot be mapped it is read. The file must not shrink while it is in use.
class MmapDataLoader final : public DataLoader {
 public:
  /// Opens and maps `path`. On failure returns null and says why in `message`.
  static std::unique_ptr<MmapDataLoader> from(const std::string& path, std::string* message);
  ~MmapDataLoader();

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override;
  Result<size_t> size() const override { return size_t{size_}; }

 private:
  MmapDataLoader(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
};

/// A file that is read piece by piece into memory of its own.
class FileDataLoader final : public DataLoader {
 public:
  /// Opens `path`. On failure returns null and says why in `message`.
  static std::unique_ptr<FileDataLoader> from(const std::string& path, std::string* message);
  ~FileDataLoader();

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override;
  Result<size_t> size() const override { return size_t{size_}; }

 private:
  struct File;
  FileDataLoader(std::unique_ptr<File> file, size_t size);
  std::unique_ptr<File> file_;
  size_t size_;
};

/// The tensors of a `.ptd` file by name.
class PtdDataMap final : public NamedDataMap {
 public:
  /// Reads the table of `loader`'s file. On failure returns null and says why in `message`.
  static std::unique_ptr<PtdDataMap> from(std::shared_ptr<const DataLoader> loader,
                                          std::string* message);
  ~PtdDataMap();

  Result<Span<const uint8_t>> get_data(const char* key) const override;
  Result<TensorLayout> get_tensor_layout(const char* key) const override;
  size_t get_num_keys() const override;
  const char* get_key(size_t index) const override;

 private:
  struct Contents;
  explicit PtdDataMap(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

/// Several maps as one. On a key in two of them returns null and says so in `message`.
std::shared_ptr<const NamedDataMap> merge(std::vector<std::shared_ptr<const NamedDataMap>> maps,
                                          std::string* message);

}  // namespace etx

#endif  // ETX_HOSTED_LOADERS_H_
