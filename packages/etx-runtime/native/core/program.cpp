// SPDX-License-Identifier: BSD-3-Clause
#include <etx/program.h>

#include <cstddef>

#include "format.h"
#include "tables.h"
#include "verify.h"

namespace etx {
namespace {

constexpr size_t kHeadSize = 64;
constexpr uint32_t kOldHeaderSize = 24;
constexpr uint32_t kHeaderSize = 32;

/// The beginning of a file; a header of kOldHeaderSize ends before segment_size.
struct Head {
  uint32_t root;
  char identifier[4];
  char magic[4];
  uint32_t header_size;
  uint64_t program_size;
  uint64_t segment_base;
  uint64_t segment_size;
};

bool is(const char* bytes, const char* name) {
  return bytes[0] == name[0] && bytes[1] == name[1] && bytes[2] == name[2] && bytes[3] == name[3];
}

/// Sets `segment_base` and the program's size, by the extended header or what its absence means.
/// Why not, when there is a reason.
const char* parse_head(const Head& head, size_t file_size, size_t* size, size_t* base) {
  using ::flatbuffers::EndianScalar;
  *size = file_size;
  *base = 0;
  if (!is(head.identifier, "ET12")) return "this is not a .pte file: ET12 is missing";
  if (!is(head.magic, "eh00")) return nullptr;
  const uint32_t header_size = EndianScalar(head.header_size);
  if (header_size < kOldHeaderSize) return "the extended header is too short";
  const uint64_t program = EndianScalar(head.program_size);
  const uint64_t segments = header_size < kHeaderSize ? 0 : EndianScalar(head.segment_size);
  if (program < kHeadSize || !fits(0, program, file_size) ||
      !fits(EndianScalar(head.segment_base), segments, file_size)) {
    return "the file is shorter than its header says: it was truncated";
  }
  *size = static_cast<size_t>(program);
  *base = static_cast<size_t>(EndianScalar(head.segment_base));
  return nullptr;
}

const fbs::Program& root_of(const void* root) { return *static_cast<const fbs::Program*>(root); }

Error fail(FailureSink* failures, Error error, const char* reason, size_t offset) {
  Failure failure;
  failure.error = error;
  failure.reason = reason;
  failure.offset = static_cast<int64_t>(offset);
  return report(failures, failure);
}

}  // namespace

bool Program::has_identifier(const void* data, size_t size) {
  return size >= 8 && is(static_cast<const char*>(data) + offsetof(Head, identifier), "ET12");
}

Result<Program> Program::load(const DataLoader* loader, Verification verification,
                              FailureSink* failures) {
  Program program(loader);
  ETX_TRY(program.read_program(verification, failures));
  ETX_TRY(program.load_constants(failures));
  return program;
}

Error Program::read(uint64_t offset, uint64_t size, const DataLoader::SegmentInfo& info,
                    FreeableBuffer* bytes) const {
  auto loaded = loader_->load(static_cast<size_t>(offset), static_cast<size_t>(size), info);
  if (!loaded.ok()) return loaded.error();
  *bytes = std::move(loaded.get());
  return bytes->size() < size ? Error::AccessFailed : Error::Ok;
}

Error Program::read_program(Verification verification, FailureSink* failures) {
  ETX_ASSIGN(const size_t file_size, loader_->size());
  if (file_size < kHeadSize) {
    return fail(failures, Error::InvalidProgram,
                "the file is shorter than 64 bytes: it is not a program or was truncated",
                file_size);
  }
  const DataLoader::SegmentInfo info;
  size_t size = kHeadSize;
  // First the head, then all of the program.
  for (int part = 0; part < 2; ++part) {
    ETX_TRY(read(0, size, info, &program_data_));
    if (reinterpret_cast<uintptr_t>(program_data_.data()) % MemoryAllocator::kDefaultAlignment !=
        0) {
      return fail(failures, Error::InvalidArgument, "the loader's memory is not aligned to 16", 0);
    }
    const Head& head = *static_cast<const Head*>(program_data_.data());
    const char* reason = parse_head(head, file_size, &size, &segment_base_);
    if (reason != nullptr) {
      const size_t offset = is(head.identifier, "ET12") ? offsetof(Head, magic) : 4;
      return fail(failures, Error::InvalidProgram, reason, offset);
    }
  }
  const uint8_t* bytes = program_data_.bytes();
  size_t where = 0;
  if (verification == Verification::Full &&
      !verify_tables(bytes, program_data_.size(), fbs::ProgramTypeTable(), &where)) {
    return fail(failures, Error::InvalidProgram, "the program's tables are corrupt", where);
  }
  where = ::flatbuffers::ReadScalar<uint32_t>(bytes);
  if (where > program_data_.size() - sizeof(uint32_t)) {
    return fail(failures, Error::InvalidProgram, "the root table lies outside of the program", 0);
  }
  const auto& root = *reinterpret_cast<const fbs::Program*>(bytes + where);
  root_ = &root;
  if (root.version() != 0) {
    return fail(failures, Error::NotSupported,
                "the program is of a newer version; upgrade the runtime", where);
  }
  if (verification == Verification::Minimal) return Error::Ok;
  return Verifier(root, bytes, file_size - segment_base_, failures).check_program();
}

Error Program::load_constants(FailureSink* failures) {
  const fbs::SubsegmentOffsets* constants = root_of(root_).constant_segment();
  if (constants == nullptr || length(constants->offsets()) <= 1) return Error::Ok;
  Failure failure;
  failure.index = static_cast<int32_t>(constants->segment_index());
  failure.error = load_segment(constants->segment_index(), DataLoader::SegmentInfo::Type::Constant,
                               nullptr, &constants_);
  if (failure.error == Error::Ok) return Error::Ok;
  failure.reason = "the constants cannot be read";
  return report(failures, failure);
}

Error Program::load_segment(size_t index, DataLoader::SegmentInfo::Type type,
                            const char* descriptor, FreeableBuffer* bytes) const {
  const auto* segments = root_of(root_).segments();
  if (index >= length(segments)) return Error::InvalidProgram;
  const fbs::DataSegment& segment = at(segments, index);
  return read(segment_base_ + segment.offset(), segment.size(), {type, index, descriptor}, bytes);
}

size_t Program::num_methods() const { return length(root_of(root_).execution_plan()); }

Result<const char*> Program::get_method_name(size_t index) const {
  if (index >= num_methods()) return Error::InvalidArgument;
  return text(at(root_of(root_).execution_plan(), index).name());
}

const void* Program::find_plan(const char* name) const {
  const auto* plans = root_of(root_).execution_plan();
  for (size_t i = 0; i < length(plans); ++i) {
    if (equals(at(plans, i).name(), name)) return &at(plans, i);
  }
  return nullptr;
}

Result<MethodMeta> Program::method_meta(const char* name) const {
  const void* plan = find_plan(name);
  if (plan == nullptr) return Error::InvalidArgument;
  return MethodMeta(plan);
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
    FreeableBuffer bytes;
    ETX_TRY(
        load_segment(entry.segment_index(), DataLoader::SegmentInfo::Type::Backend, key, &bytes));
    return bytes;
  }
  return Error::NotFound;
}

}  // namespace etx
