#!/bin/sh
# Fence 2: reads the symbols of every object of the product.  Usage: tools/symcheck.sh FOLDER  (build/release)
#  1. only pools/domain_*.o may need something that obtains memory
#  2. kernels/ need nothing but each other, maths, memory copies, and what a team of threads is made of
#  3. exported names begin with the first word of the file's stem or with its folder's name, or match a line of
#     tools/symcheck_names.txt
# Prints one line a finding; exits 1 if there is any.
set -eu
folder=$1
names=$(dirname "$0")/symcheck_names.txt
findings=$(mktemp) inside=$(mktemp)
trap 'rm -f "$findings" "$inside"' EXIT

memory='malloc|calloc|realloc|reallocarray|free|strdup|strndup|v?asprintf|getline|getdelim|qsort|fopen|fdopen|popen'
memory="$memory|opendir|getaddrinfo|localtime(_r)?|dprintf|strerror|aligned_alloc|posix_memalign|memalign|p?valloc"
memory="$memory|mmap(64)?|munmap|mremap|s?brk|setenv|putenv|open_memstream|scandir|glob|regcomp|iconv_open|dlopen"
memory="$memory|utf8proc_(map|NF).*|png_create_read_struct|pthread_(exit|cancel)"

maths='(exp|exp2|log|pow|sin|cos|tanh|erfc?|sqrt|rint|nearbyint|lrint|lround|fma|floor|ceil|ldexp|fabs|round|sincos'
maths="$maths|fmax|fmin|trunc)f?"
plain='mem(cpy|move|set|cmp)|strcmp|strncmp|strlen|snprintf|__assert_fail|abort|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail'
plain="$plain|__cpu_(model|indicator_init|features2)"
team='sched_yield|syscall|pthread_(mutex|cond)_[a-z]+|sem_[a-z]+'

objects=$(find "$folder/pools" "$folder/kernels" "$folder/engine" -name '*.o' | sort)

needs() { nm --undefined-only --format=posix "$1" | cut -d' ' -f1 | sed 's/@.*//'; }
exports() { nm --extern-only --defined-only --format=posix "$1" | cut -d' ' -f1; }

for object in $objects; do
    case "$object" in "$folder"/kernels/*) exports "$object" ;; esac
done >"$inside"

for object in $objects; do
    source=${object#"$folder"/}
    stem=$(basename "$object" .o)
    word=${stem%%_*} place=$(basename "$(dirname "$source")")
    case "$source" in
    pools/domain_*) ;;
    *)
        needs "$object" | grep -Ex "$memory" |
            sed "s|.*|$source: needs &, which obtains memory; only pools/domain_*.c may|"
        ;;
    esac
    case "$source" in
    kernels/*)
        needs "$object" | grep -v '^$' | grep -Evx "$maths|$plain|$team" | grep -Fvxf "$inside" |
            sed "s|.*|$source: needs &; kernels need maths and memory copies only|"
        ;;
    esac
    exports "$object" | grep -Ev "^(($word|$place)(_|\$)|main\$)" | sed "s|^|$source |" | grep -Evxf "$names" |
        sed "s|\(.*\) \(.*\)|\1: exports \2; begin it with ${word}_ or make it static|"
done >"$findings" || true

cat "$findings"
count=$(wc -l <"$findings")
echo "symcheck: $count findings"
[ "$count" -eq 0 ]
