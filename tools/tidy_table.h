/* What tools/tidy.c forbids. Data only, so no include guard: define BANNED or LAYER, include, done.
 *
 *     BANNED(name, instead, allowed_in)   a call that the product may not make; allowed_in: path parts, separated by blanks
 *     LAYER(folder, target, is_allowed)   files of folder may include targets (paths); the first row that matches decides
 */
#ifndef BANNED
#define BANNED(name, instead, allowed_in)
#endif
#ifndef LAYER
#define LAYER(folder, target, is_allowed)
#endif

BANNED("malloc", "take a pool's element or the caller's buffer", "")
BANNED("calloc", "take a pool's element or the caller's buffer", "")
BANNED("realloc", "bound the size at start", "")
BANNED("free", "give the element back to its pool", "")
BANNED("aligned_alloc", "take a pool's element", "")
BANNED("posix_memalign", "take a pool's element", "")
BANNED("alloca", "use a bounded array or a buffer of the plan", "")
BANNED("mmap", "domain_host.c alone maps memory", "pools/domain_")
BANNED("munmap", "domain_host.c alone unmaps memory", "pools/domain_")
BANNED("strdup", "copy into a bounded buffer", "")
BANNED("strndup", "copy into a bounded buffer", "")
BANNED("asprintf", "snprintf into a bounded buffer", "")
BANNED("vasprintf", "vsnprintf into a bounded buffer", "")
BANNED("getline", "domain_file_map", "")
BANNED("fopen", "domain_file_map, or open and read", "")
BANNED("fdopen", "read and write", "")
BANNED("popen", "nothing: the server starts no process", "")
BANNED("qsort", "a sort of our own: qsort allocates", "")
BANNED("getaddrinfo", "inet_pton: addresses are numeric", "")
BANNED("localtime", "gmtime_r", "")
BANNED("localtime_r", "gmtime_r", "")
BANNED("dprintf", "log_line, or snprintf and write", "")
BANNED("printf", "log_line or start_print", "")
BANNED("puts", "log_line or start_print", "")
BANNED("fprintf", "log_line or start_refuse", "")
BANNED("sprintf", "snprintf", "")
BANNED("strcpy", "snprintf or memcpy with a checked length", "")
BANNED("strcat", "snprintf or memcpy with a checked length", "")
BANNED("strtok", "a bounded scan", "")
BANNED("strerror", "start_errno_text", "")
BANNED("atoi", "a parser that reports errors", "")
BANNED("atol", "a parser that reports errors", "")
BANNED("atof", "a parser that reports errors", "")
BANNED("rand", "the request's counter-based generator", "")
BANNED("setjmp", "a return value; libjpeg and libpng alone need it", "image/jpeg image/png")
BANNED("system", "nothing: the server starts no process", "")
BANNED("fork", "nothing: the server starts no process", "")
BANNED("pthread_exit", "return from the thread's function", "")
BANNED("pthread_cancel", "a stop flag", "")
BANNED("exit", "start_refuse, or return to main", "engine/start engine/main")
BANNED("_exit", "start_refuse, or return to main", "engine/start engine/main")

LAYER("pools/", "pools/", true)
LAYER("pools/", "config.h", true)
LAYER("pools/", "", false)
LAYER("kernels/", "kernels/", true)
LAYER("kernels/", "config.h", true)
LAYER("kernels/", "", false)
LAYER("engine/model/", "engine/http/", false)
LAYER("engine/text/", "engine/http/", false)
LAYER("engine/image/", "engine/http/", false)
LAYER("engine/io/", "engine/http/", false)
LAYER("engine/http/", "engine/model/", false)
LAYER("engine/", "tests/", false)
LAYER("engine/", "tools/", false)

#undef BANNED
#undef LAYER
