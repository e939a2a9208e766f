// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_CPP_PROCESSES_H_
#define ETX_TESTS_CPP_PROCESSES_H_

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

#include "check.h"

/// Threads of this process. One that was joined may be seen for a moment more.
inline size_t count_tasks() {
  DIR* folder = opendir("/proc/self/task");
  CHECK(folder != nullptr);
  size_t count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

inline size_t count_threads() {
  size_t least = count_tasks();
  for (int i = 0; i < 20; ++i) {
    usleep(500);
    const size_t now = count_tasks();
    least = now < least ? now : least;
  }
  return least;
}

/// Calls `work` in a child process, which must end by itself within ten seconds.
template <typename Work>
void in_child(const Work& work) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(10);
    work();
    std::exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif  // ETX_TESTS_CPP_PROCESSES_H_
