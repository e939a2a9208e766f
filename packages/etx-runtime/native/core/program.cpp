// SPDX-License-Identifier: BSD-3-Clause
#include <etx/program.h>

#include <cstring>

#include "format.h"
#include "tables.h"
#include "verify.h"

namespace etx {
namespace {

constexpr size_t kHeadSize = 64;
constexpr size_t kHeaderOffset = 8;
constexpr uint32_t kOldHeaderSize = 24;
constexpr uint32_t kHeaderSize = 32;

uint64_t read_number(const uint8_t* bytes, int width) {
  uint64_t number = 0;
  for (int i = width; i-- > 0;) number = number << 8 | bytes[i];
  return number;
}

/// Where the parts of the file are: the extended header, or what its absence means.
struct Head {
  uint64_t program_size;
  uint64_t segment_base = 0;
  uint64_t segment_size = 0;
};

Error parse_head(const uint8_t* bytes, uint64_t file_size, Head* head, FailureSink* failures) {
  Failure failure;
  failure.error = Error::InvalidProgram;
  head->program_size = file_size;
  if (!Program::has_identifier(bytes, kHeadSize)) {
    failure.reason = "this is no .pte file: ET12 is missing";
    failure.offset = 4;
    return report(failures, failure);
  }
  const uint8_t* header = bytes + kHeaderOffset;
  if (std::memcmp(header, "eh00", 4) != 0) return Error::Ok;
  failure.offset = static_cast<int64_t>(kHeaderOffset);
  const auto length = static_cast<uint32_t>(read_number(header + 4, 4));
  if (length < kOldHeaderSize) {
    failure.reason = "the extended header is too short";
    return report(failures, failure);
  }
  head->program_size = read_number(header + 8, 8);
  head->segment_base = read_number(header + 16, 8);
  if (length >= kHeaderSize) head->segment_size = read_number(header + 24, 8);
  if (head->program_size > file_size || head->program_size < kHeadSize ||
      head->segment_base > file_size || head->segment_size > file_size - head->segment_base) {
    failure.reason = "the file is shorter than its header says: it was truncated";
    return report(failures, failure);
  }
  return Error::Ok;
}

const fbs::Program& root_of(const void* root) { return *static_cast<const fbs::Program*>(root); }

}  // namespace

bool Program::has_identifier(const void* data, size_t size) {
  return size >= kHeaderOffset &&
         std::memcmp(static_cast<const uint8_t*>(data) + 4, "ET12", 4) == 0;
}

Result<Program> Program::load(const DataLoader* loader, Verification verification,
                              FailureSink* failures) {
  Program program(loader);
  ETX_TRY(program.read_head(verification, failures));
  ETX_TRY(program.load_constants(failures));
  return program;
}

Error Program::read_head(Verification verification, FailureSink* failures) {
  Failure failure;
  failure.error = Error::InvalidProgram;
  ETX_ASSIGN(const size_t size, loader_->size());
  file_size_ = size;
  if (size < kHeadSize) {
    failure.reason = "the file is shorter than 64 bytes: it is no program or was truncated";
    failure.offset = static_cast<int64_t>(size);
    return report(failures, failure);
  }
  const DataLoader::SegmentInfo info;
  Head head;
  {
    ETX_ASSIGN(const FreeableBuffer bytes, loader_->load(0, kHeadSize, info));
    ETX_TRY(parse_head(bytes.bytes(), size, &head, failures));
  }
  segment_base_ = head.segment_base;
  ETX_ASSIGN(program_data_, loader_->load(0, static_cast<size_t>(head.program_size), info));
  const uint8_t* bytes = program_data_.bytes();
  if (reinterpret_cast<uintptr_t>(bytes) % MemoryAllocator::kDefaultAlignment != 0) {
    failure.error = Error::InvalidArgument;
    failure.reason = "the loader's memory is not aligned to 16";
    return report(failures, failure);
  }
  if (verification == Verification::Full) {
    size_t where = 0;
    if (!verify_tables(bytes, program_data_.size(), fbs::ProgramTypeTable(), &where)) {
      failure.reason = "the program's tables are corrupt";
      failure.offset = static_cast<int64_t>(where);
      return report(failures, failure);
    }
  } else if (read_number(bytes, 4) > program_data_.size() - sizeof(uint32_t)) {
    failure.reason = "the root table lies outside of the program";
    failure.offset = 0;
    return report(failures, failure);
  }
  const fbs::Program& root = *fbs::GetProgram(bytes);
  root_ = &root;
  if (root.version() != 0) {
    failure.error = Error::NotSupported;
    failure.reason = "the program is of a newer version; upgrade the runtime";
    failure.offset = reinterpret_cast<const uint8_t*>(&root) - bytes;
    return report(failures, failure);
  }
  if (verification == Verification::Minimal) return Error::Ok;
  return Verifier(root, bytes, file_size_ - segment_base_, failures).check_program();
}

Error Program::load_constants(FailureSink* failures) {
  const fbs::SubsegmentOffsets* constants = root_of(root_).constant_segment();
  if (constants == nullptr || length(constants->offsets()) <= 1) return Error::Ok;
  DataLoader::SegmentInfo info;
  info.segment_type = DataLoader::SegmentInfo::Type::Constant;
  info.segment_index = constants->segment_index();
  auto segment = load_segment(info.segment_index, info);
  if (segment.ok()) {
    constants_ = std::move(segment.get());
    return Error::Ok;
  }
  Failure failure;
  failure.error = segment.error();
  failure.reason = "the constants cannot be read";
  failure.index = static_cast<int32_t>(info.segment_index);
  return report(failures, failure);
}

Result<FreeableBuffer> Program::load_segment(size_t index,
                                             const DataLoader::SegmentInfo& info) const {
  const auto* segments = root_of(root_).segments();
  if (index >= length(segments)) return Error::InvalidProgram;
  const fbs::DataSegment& segment = at(segments, index);
  return loader_->load(static_cast<size_t>(segment_base_ + segment.offset()),
                       static_cast<size_t>(segment.size()), info);
}

size_t Program::num_methods() const { return length(root_of(root_).execution_plan()); }

Result<const char*> Program::get_method_name(size_t index) const {
  if (index >= num_methods()) return Error::InvalidArgument;
  return text(at(root_of(root_).execution_plan(), index).name());
}

Result<MethodMeta> Program::method_meta(const char* name) const {
  for (uint32_t i = 0; i < num_methods(); ++i) {
    const fbs::ExecutionPlan* plan = &at(root_of(root_).execution_plan(), i);
    if (equals(plan->name(), name)) return MethodMeta(plan);
  }
  return Error::InvalidArgument;
}

size_t Program::num_named_data() const { return length(root_of(root_).named_data()); }

Result<const char*> Program::named_data_key(size_t index) const {
  if (index >= num_named_data()) return Error::InvalidArgument;
  return text(at(root_of(root_).named_data(), index).key());
}

Result<FreeableBuffer> Program::load_named_data(const char* key) const {
  for (uint32_t i = 0; i < num_named_data(); ++i) {
    const fbs::NamedData& entry = at(root_of(root_).named_data(), i);
    if (!equals(entry.key(), key)) continue;
    DataLoader::SegmentInfo info;
    info.segment_type = DataLoader::SegmentInfo::Type::Backend;
    info.segment_index = entry.segment_index();
    info.descriptor = text(entry.key());
    return load_segment(entry.segment_index(), info);
  }
  return Error::NotFound;
}

}  // namespace etx
