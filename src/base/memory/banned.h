/* banned.h - what must not be called outside its one place.

   The build puts it in front of every source file of the library (-include),
   except budget.c, which is the allocator, and yaml.c, whose library's header
   mentions free. Headers that mention the words themselves come first. Words
   that we need as names of our own (open, read, write, rename) cannot be
   poisoned: tests/base/test_banned.c looks for calls of those.

   Instead: budget_take, arena_take, arena_string, snprintf, text_add,
   random_block, file_open, and a plim_status. */
#ifndef BASE_MEMORY_BANNED_H
#define BASE_MEMORY_BANNED_H

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#if defined(__x86_64__) || defined(__i386__)
#include <mm_malloc.h> /* what immintrin.h includes */
#endif

#undef alloca /* a macro cannot be poisoned without a warning */

/* Memory that the budget would not see. */
#pragma GCC poison malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign valloc pvalloc
#pragma GCC poison strdup strndup asprintf vasprintf getline getdelim open_memstream alloca
/* Writing without a bound, parsing without an error. */
#pragma GCC poison strcpy stpcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atoll atof
/* Ending the host. */
#pragma GCC poison abort exit _exit _Exit quick_exit
/* Shared state, and numbers that nobody can repeat. */
#pragma GCC poison rand srand rand_r srandom drand48 lrand48 mrand48 random_r strerror
/* Files and programs behind the file layer's back. */
#pragma GCC poison fopen fdopen freopen tmpfile tmpnam mkstemp popen

#endif
