/* no_heap: fence 1. The Makefile puts this before every product file except pools/domain_*.c: after the system's
 * headers were read, the names of everything that obtains memory, directly or behind the back, are poisoned.
 *
 * _GNU_SOURCE is defined here because the headers below are read before the file's own first line; a file that needs it
 * still says so (`#define _GNU_SOURCE`, empty like this one), so that it also compiles without the fence. `printf`
 * stays a word, since our headers say format(printf, ...); calls of it are found by the symbol check.
 */
#ifndef POOLS_NO_HEAP_H
#define POOLS_NO_HEAP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/* Whatever names an allocator must be read before the names are poisoned. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <locale.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#if defined(__x86_64__)
#include <mm_malloc.h> /* of the vector headers */
#endif

#pragma GCC poison malloc calloc realloc reallocarray free cfree strdup strndup asprintf vasprintf
#pragma GCC poison aligned_alloc posix_memalign memalign valloc pvalloc _mm_malloc _mm_free
#pragma GCC poison mmap munmap mremap brk sbrk shmat
#pragma GCC poison qsort qsort_r hsearch tsearch
#pragma GCC poison fopen fdopen freopen fmemopen open_memstream tmpfile popen
#pragma GCC poison vprintf fprintf vfprintf dprintf vdprintf puts putchar perror
#pragma GCC poison getline getdelim opendir fdopendir scandir glob regcomp
#pragma GCC poison getaddrinfo gethostbyname getnameinfo
#pragma GCC poison localtime localtime_r mktime setlocale setenv putenv
#pragma GCC poison strerror strerror_r sprintf vsprintf strcpy strcat gets
#pragma GCC poison pthread_exit pthread_cancel
#pragma GCC poison cudaMalloc cudaMallocHost cudaHostAlloc cudaMallocAsync cudaMallocManaged cudaFree cudaFreeAsync

#endif
