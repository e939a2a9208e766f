// SPDX-License-Identifier: BSD-3-Clause
// Maps changed files of packed weights: `fuzz_cache RUNS SEED FOLDER`. Half of the changed ones get
// the checks and times that belong to what they then say. What is mapped has the key that was asked
// for, can be read to its last byte, and is what was written where bytes are compared.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "cache/folder.cpp"

namespace {

using namespace etx::xnnpack;

using Bytes = std::vector<char>;

constexpr size_t kKey = 200;
constexpr size_t kWeights = 9000;
constexpr Digest kName{1, 2};

void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("fuzz_cache: %s (%s)\n", what, std::strerror(errno));
  std::fflush(stdout);
  std::abort();
}

Bytes read_file(const char* path) {
  FILE* file = std::fopen(path, "rb");
  require(file != nullptr, "the file is not there");
  Bytes bytes(size_t{1} << 16);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

void write_file(const char* path, const Bytes& bytes, const timespec& changed) {
  Descriptor file;
  file.number = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const timespec times[] = {changed, changed};
  require(write_all(file.number, bytes.data(), bytes.size()), "not written");
  require(futimens(file.number, times) == 0, "its times are not set");
}

uint64_t draw(std::minstd_rand& random, uint64_t near) {
  constexpr uint64_t kNumbers[] = {0,          1,          7,           8,          56,
                                   kPage - 1,  kPage,      kPage + 1,   kMostKey,   kMostKey + 1,
                                   kWeights,   1ull << 31, UINT32_MAX,  1ull << 63, ~0ull,
                                   ~0ull - 56, ~0ull - 63, ~0ull - 4095};
  switch (random() % 4) {
    case 0: return near + random() % 17 - 8;
    case 1: return near ^ (uint64_t{1} << (random() % 64));
    default: return kNumbers[random() % std::size(kNumbers)];
  }
}

/// A field of the header, a number anywhere, or the length.
void change(Bytes* file, std::minstd_rand& random) {
  const uint64_t kind = random() % 8;
  if (kind == 0) {
    file->resize(random() % 4 == 0
                     ? random() % 20000
                     : file->size() + random() % 9 - std::min(file->size(), size_t{4}));
    return;
  }
  if (file->size() < sizeof(Header)) return;
  const size_t fields = sizeof(Header) / sizeof(uint64_t);
  const size_t words = file->size() / sizeof(uint64_t);
  const size_t place = (kind < 5 ? random() % fields : random() % words) * sizeof(uint64_t);
  uint64_t number = 0;
  std::memcpy(&number, file->data() + place, sizeof(number));
  number = draw(random, number);
  std::memcpy(file->data() + place, &number, sizeof(number));
}

/// Gives the file the length and the checks that its header asks for, where it can have them.
void seal(Bytes* file, std::minstd_rand& random) {
  Header header;
  if (file->size() < sizeof(header)) return;
  std::memcpy(&header, file->data(), sizeof(header));
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  if (header.key_size <= kMostKey && header.size <= kMostKey && random() % 2 == 0) {
    file->resize(place_of(header.key_size) + header.size + kSlack);
  }
  const size_t key_size = header.key_size;
  const bool is_whole = key_size <= file->size() - sizeof(header);
  if (is_whole) header.check = check_of(header, file->data() + sizeof(header));
  std::memcpy(file->data(), &header, sizeof(header));
}

struct Counts {
  size_t found = 0, refused = 0;
};

void look(const WeightFolder& folder, const char* key, const Bytes& file, const Bytes* whole,
          Counts* counts) {
  MappedWeights weights{};
  if (!folder.find(kName, key, kKey, &weights)) {
    ++counts->refused;
    return;
  }
  ++counts->found;
  require(std::memcmp(file.data() + sizeof(Header), key, kKey) == 0, "another key");
  volatile char last = 0;
  for (size_t i = 0; i < weights.size + kSlack; ++i) last = weights.bytes[i];
  static_cast<void>(last);
  if (whole != nullptr && weights.size == kWeights) {
    require(std::memcmp(weights.bytes, whole->data(), kWeights) == 0, "other bytes");
  }
  unmap(weights);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t runs = std::strtoul(argv[1], nullptr, 10);
  std::minstd_rand random(static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  stderr = std::fopen("/dev/null", "w");
  WeightFolder trusting, verifying;
  require(trusting.open(argv[3], uint64_t{1} << 30, false), "the folder is not used");
  require(verifying.open(argv[3], uint64_t{1} << 30, true), "the folder is not used");
  Bytes key(kKey), bytes(kWeights);
  for (char& each : key) each = static_cast<char>(random());
  for (char& each : bytes) each = static_cast<char>(random());
  require(trusting.store(kName, key.data(), kKey, bytes.data(), kWeights,
                         [](const Digest&) { return false; }),
          "not stored");
  Name path;
  name_of(argv[3], kName, path);
  const Bytes stored = read_file(path);
  Counts counts;
  look(verifying, key.data(), stored, &bytes, &counts);
  require(counts.found == 1, "what was stored is not found");
  counts = {};
  for (size_t i = 0; i < runs; ++i) {
    Bytes file = stored;
    for (uint64_t count = 1 + random() % 2; count > 0; --count) change(&file, random);
    if (random() % 2 == 0) seal(&file, random);
    timespec changed{0, 0};
    if (file.size() >= sizeof(Header) && random() % 8 != 0) {
      Header header;
      std::memcpy(&header, file.data(), sizeof(header));
      changed = {header.written, header.written_ns < 1000000000 ? header.written_ns : 0};
      if (changed.tv_nsec < 0) changed.tv_nsec = 0;
    }
    write_file(path, file, changed);
    const bool verifies = random() % 2 == 0;
    look(verifies ? verifying : trusting, key.data(), file, verifies ? &bytes : nullptr, &counts);
  }
  std::printf("changed files: %zu refused, %zu mapped\n", counts.refused, counts.found);
  return 0;
}
