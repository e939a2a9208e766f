/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into every library of a wheel on x86-64 Linux, so that it loads where glibc is 2.28: each
   function below takes the place of one that newer C libraries have renewed, moved or added, and
   calls its first version. Nothing here is visible outside of the library. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define FIRST(type, name, parameters, arguments)                \
  extern type etx_first_##name parameters;                      \
  __asm__(".symver etx_first_" #name "," #name "@GLIBC_2.2.5"); \
  HIDDEN type name parameters;                                  \
  HIDDEN type name parameters { return etx_first_##name arguments; }

FIRST(double, exp, (double x), (x))
FIRST(double, log, (double x), (x))
FIRST(double, log2, (double x), (x))
FIRST(double, pow, (double x, double y), (x, y))
FIRST(double, hypot, (double x, double y), (x, y))
FIRST(float, hypotf, (float x, float y), (x, y))
FIRST(int, dlclose, (void* library), (library))
FIRST(char*, dlerror, (void), ())
FIRST(void*, dlopen, (const char* path, int flags), (path, flags))
FIRST(void*, dlsym, (void* library, const char* name), (library, name))
FIRST(int, pthread_create, (void* thread, const void* how, void* (*run)(void*), void* user),
      (thread, how, run, user))
FIRST(int, pthread_join, (unsigned long thread, void** result), (thread, result))
FIRST(int, pthread_detach, (unsigned long thread), (thread))
FIRST(int, pthread_mutex_trylock, (void* mutex), (mutex))
FIRST(int, pthread_rwlock_rdlock, (void* lock), (lock))
FIRST(int, pthread_rwlock_wrlock, (void* lock), (lock))
FIRST(int, pthread_rwlock_unlock, (void* lock), (lock))
FIRST(int, pthread_once, (void* once, void (*run)(void)), (once, run))
FIRST(int, pthread_key_create, (unsigned* key, void (*destroy)(void*)), (key, destroy))
FIRST(int, __pthread_key_create, (unsigned* key, void (*destroy)(void*)), (key, destroy))
FIRST(int, pthread_key_delete, (unsigned key), (key))
FIRST(void*, pthread_getspecific, (unsigned key), (key))
FIRST(int, pthread_setspecific, (unsigned key, const void* value), (key, value))

/* Before 2.33 the functions of sys/stat.h were inline calls of these; 1 is this layout. */
extern int __fxstat(int layout, int file, struct stat* result);
extern int __xstat(int layout, const char* path, struct stat* result);
HIDDEN int fstat(int file, struct stat* result) { return __fxstat(1, file, result); }
HIDDEN int stat(const char* path, struct stat* result) { return __xstat(1, path, result); }

/* 2.32: libstdc++ counts references without atomic operations while this says one thread. */
HIDDEN char __libc_single_threaded = 0;

/* 2.36: what std::random_device of a newer libstdc++ asks for. */
extern int getentropy(void* bytes, size_t count);
HIDDEN uint32_t arc4random(void);
HIDDEN uint32_t arc4random(void) {
  uint32_t bits = 0;
  if (getentropy(&bits, sizeof bits) != 0) __builtin_trap();
  return bits;
}
