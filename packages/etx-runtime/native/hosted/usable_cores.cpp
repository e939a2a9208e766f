// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/thread_pool.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "../platform/os.h"

namespace etx {
namespace {

/// The text of a file, empty when it cannot be read.
std::string read_text(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return text;
  std::setvbuf(file, nullptr, _IONBF, 0);
  char buffer[4096];
  size_t size;
  do {
    size = std::fread(buffer, 1, sizeof(buffer), file);
    text.append(buffer, size);
  } while (size == sizeof(buffer));
  std::fclose(file);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool holds(std::string_view list, std::string_view name) {
  const auto parts = split(list, ',');
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

/// Where the groups of one hierarchy with CPU quotas are seen.
struct Mount {
  bool is_v2 = false;
  /// The group that lies at `folder`.
  std::string_view group;
  std::string_view folder;
};

/// Reads /proc/self/mountinfo: `id parent device root folder options … - type source options`.
std::vector<Mount> find_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.end() - dash < 4 || dash - words.begin() < 5) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    if (is_v2 || (dash[1] == "cgroup" && holds(dash[3], "cpu"))) {
      mounts.push_back({is_v2, words[3], words[4]});
    }
  }
  return mounts;
}

/// The path of this process's group. Reads /proc/self/cgroup: `id:controllers:path`.
std::string_view find_group(std::string_view text, bool is_v2) {
  for (const std::string_view line : split(text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (is_v2 ? controllers.empty() : holds(controllers, "cpu")) return line.substr(second + 1);
  }
  return {};
}

/// The quota of the group at `folder` in cores; infinite when it has none.
double quota_of(const std::string& folder, bool is_v2) {
  std::string text;
  if (is_v2) {
    text = read_text(folder + "/cpu.max");
  } else {
    text = read_text(folder + "/cpu.cfs_quota_us") + " " + read_text(folder + "/cpu.cfs_period_us");
  }
  double quota = 0;
  double period = 0;
  const bool is_limited = std::sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2;
  return is_limited && quota > 0 && period > 0 ? quota / period : INFINITY;
}

/// The least quota of this process's group and those around it, in cores.
double least_quota(const std::string& root) {
  const std::string mounts = read_text(root + "/proc/self/mountinfo");
  const std::string groups = read_text(root + "/proc/self/cgroup");
  double least = INFINITY;
  for (const Mount& mount : find_mounts(mounts)) {
    std::string_view group = find_group(groups, mount.is_v2);
    const bool is_below = group.substr(0, mount.group.size()) == mount.group;
    group.remove_prefix(is_below && mount.group != "/" ? mount.group.size() : 0);
    std::string folder = root + std::string(mount.folder);
    const size_t top = folder.size();
    if (group != "/") folder += group;
    for (;;) {
      least = std::min(least, quota_of(folder, mount.is_v2));
      if (folder.size() <= top) break;
      folder.resize(std::max(top, folder.rfind('/')));
    }
  }
  return least;
}

}  // namespace

uint32_t usable_cores(const char* root) {
  const uint32_t cores = os::cores();
  const double quota = std::ceil(least_quota(root));
  return quota < cores ? std::max(1u, static_cast<uint32_t>(quota)) : cores;
}

}  // namespace etx
