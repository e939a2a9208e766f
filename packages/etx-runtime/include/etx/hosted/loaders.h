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
/// files cannot be mapped it is read. While it is in use the file must not be cut short (reading
/// what is gone ends the process with SIGBUS) nor written to in place (what was verified is changed
/// then, with any consequence). To unlink it, or to put another in its place by a rename, is safe.
class MmapDataLoader final : public DataLoader {
 public:
  /// Opens and maps `path`. On failure returns null and says why in `message`.
  static std::unique_ptr<MmapDataLoader> from(const std::string& path, std::string* message);
  /// Maps `size` bytes of an open file from `offset`, a multiple of 16, for instance an asset of an
  /// Android package; a `size` of 0 means up to its end. The caller keeps `descriptor` and may
  /// close it. On failure returns null and says why in `message`.
  static std::unique_ptr<MmapDataLoader> from_descriptor(int descriptor, uint64_t offset,
                                                         uint64_t size, std::string* message);
  ~MmapDataLoader();

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override;
  Result<size_t> size() const override { return size_t{size_}; }

 private:
  MmapDataLoader(void* mapping, size_t mapped, size_t skipped)
      : mapping_(mapping), mapped_(mapped), skipped_(skipped), size_(mapped - skipped) {}
  void* mapping_;
  size_t mapped_;
  /// Bytes of the mapping before the first one of the file.
  size_t skipped_;
  size_t size_;
};

/// A file that is read piece by piece into memory of its own, by several threads at once: segments
/// when a method is loaded or reset, which must not have been written to by then. When it has
/// become shorter than it was, `load` fails with AccessFailed.
class FileDataLoader final : public DataLoader {
 public:
  /// Opens `path`. On failure returns null and says why in `message`.
  static std::unique_ptr<FileDataLoader> from(const std::string& path, std::string* message);
  /// Reads `size` bytes of an open file from `offset`; a `size` of 0 means up to its end. The
  /// caller keeps `descriptor`, whose position stays, and may close it. On failure returns null
  /// and says why in `message`.
  static std::unique_ptr<FileDataLoader> from_descriptor(int descriptor, uint64_t offset,
                                                         uint64_t size, std::string* message);
  ~FileDataLoader();

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override;
  Result<size_t> size() const override { return size_t{size_}; }

 private:
  FileDataLoader(int file, uint64_t begin, size_t size) : file_(file), begin_(begin), size_(size) {}
  int file_;
  uint64_t begin_;
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
