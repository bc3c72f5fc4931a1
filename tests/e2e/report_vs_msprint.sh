#!/bin/bash
# Compares ptmem-report with ms_print: Valgrind's Massif profiles a few programs
# under many options, and both programs print each file under many options of
# their own. Every text must be the same to the byte, but for one difference: ms_print takes
# '#' in names and command lines for the begin of a comment and cuts them there. So it is given
# a copy of the file with another character in these places, which is restored in its text.
#
# Usage: report_vs_msprint.sh [PTMEM_REPORT]     (default: build/ptmem-report)
# Each file is printed under a quarter of the options, which differ from file to file, one file and, where
# PTMEM_ALL_VIEWS is set, each file under all of them.
# The last line is "N passed, N failed"; status 1 if any failed, 77 if a tool is absent.
#
# Valgrind's files and what ms_print printed of each are kept in tests/golden/ms_print: the files, a digest of what they depend
# on (this script, compiler, Valgrind, ms_print, Perl), and digests of ms_print's answers by all that it was given. It is asked
# again where one of these differs, so that a digest never makes a test fail. `make peers` (PTMEM_PEERS=ask) makes them anew.

set -u
report=$(realpath "${1:-build/ptmem-report}") || exit 1
[ -x "$report" ] || { echo "no program $report"; exit 1; }
golden=$(realpath "$(dirname "$0")/../golden/massif") || exit 1
kept=$(realpath "$(dirname "$0")/../golden")/ms_print
script=$(realpath "$0")
for tool in valgrind ms_print gcc g++; do
	command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
# ms_print leaves its scratch files in TMPDIR when it dies; another user's would be in its way.
export TMPDIR=$dir
mkdir copy
passed=0
failed=0
depends=$({ cat "$script" "$(command -v ms_print)"; gcc --version; g++ --version; valgrind --version; perl -e 'print $]'; } |
	sha256sum | cut -d' ' -f1)
declare -A answers
is_kept=
if [ "${PTMEM_PEERS:-}" != ask ] && [ "$depends" = "$(cat "$kept/depends" 2>/dev/null)" ] && tar -xJf "$kept/files.tar.xz"; then
	is_kept=yes
	while read -r given answer; do
		answers[$given]=$answer
	done <"$kept/answers"
fi

make_programs() {
cat >tree.c <<'EOF'
#include <stdlib.h>
static void *leaf(int n) { return malloc((size_t)n); }
static void *left(int n) { return leaf(n); }
static void *deep(int depth, int n) { return depth ? deep(depth - 1, n) : n & 1 ? left(n) : leaf(n); }
int main(void)
{
	void *block[200] = {0};
	for (int i = 0; i < 3000; i++) {
		int k = i * 7 % 200;
		free(block[k]);
		block[k] = i % 5 ? deep(i % 9, 10 + i % 333) : left(i);
		if (i % 50 == 0)
			block[k] = realloc(block[k], (size_t)i * 3 + 1);
	}
	for (int i = 0; i < 150; i++)
		free(block[i]);
	return 0;
}
EOF
cat >many.c <<'EOF'
#include <stdlib.h>
#define A(n) keep[i++] = malloc(n);
#define B(n) A(n) A(n + 1) A(n + 2) A(n + 3) A(n) A(n * 9)
#define C(n) B(n) B(n * 2) B(n * 3) B(n) B(n * 50)
int main(void)
{
	void *keep[10000];
	int i = 0;
	for (int round = 0; round < 20; round++) {
		C(1) C(2) C(10) C(100)
	}
	while (i > 10)
		free(keep[--i]);
	return 0;
}
EOF
cat >large.c <<'EOF'
#include <stdlib.h>
static void *big(size_t n) { return malloc(n); }
int main(void)
{
	void *p = NULL;
	for (size_t i = 1; i < 40; i++) {
		free(p);
		p = big((i << 28) + 12345 * i);
	}
	return 0;
}
EOF
cat >names.cc <<'EOF'
#include <functional>
#include <map>
#include <string>
#include <vector>
template <class T, class U> struct pair_of { T *make(int n) { return new T[n]; } U operator()(int n) { return new char[n]; } };
struct deep_type { std::map<std::string, std::vector<std::function<void(int)>>> m; };
int main()
{
	std::map<std::string, std::vector<std::string>> m;
	for (int i = 0; i < 60; i++)
		m["a key that is long enough for the heap " + std::to_string(i % 7)].push_back(std::string(100 + i, 'x'));
	auto f = [](int n) { return new deep_type[n]; };
	for (int i = 1; i < 30; i++) {
		f(i);
		pair_of<std::pair<int, deep_type>, void *>().make(i);
		pair_of<int, void *>()(i);
	}
	return 0;
}
EOF
cat >pages.c <<'EOF'
#include <stdlib.h>
#include <sys/mman.h>
int main(void)
{
	for (size_t i = 1; i < 40; i++) {
		char *p = mmap(NULL, i << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (i % 2)
			munmap(p, i << 14);
	}
	return malloc(1000000) == NULL;
}
EOF
printf '%s\n' 'int main(void) { return 0; }' >nothing.c
for name in tree many large pages nothing; do
	gcc -g -w -o $name $name.c || exit 1
done
g++ -g -w -o names names.cc && g++ -g -O2 -w -o names_O2 names.cc || exit 1
gcc -O2 -w -s -o stripped tree.c || exit 1
}
[ -n "$is_kept" ] || make_programs

# Massif's options for each file; the program is the first word.
profiles=(
	"tree --time-unit=i"
	"tree --time-unit=ms"
	"tree --time-unit=B --max-snapshots=10"
	"tree --time-unit=B --threshold=0 --detailed-freq=1 --max-snapshots=200"
	"tree --time-unit=B --depth=2 --threshold=10 --detailed-freq=3"
	"tree --time-unit=B --stacks=yes"
	"tree --heap=no --stacks=yes --time-unit=i"
	"tree --heap=no"
	"tree --heap-admin=1024 --alloc-fn=leaf --ignore-fn=left --time-unit=B"
	"tree --pages-as-heap=yes"
	"stripped --time-unit=B --peak-inaccuracy=50"
	"many --time-unit=B --threshold=0.05"
	"many --time-unit=i --threshold=0 --detailed-freq=7"
	"large --time-unit=B"
	"large --time-unit=ms --threshold=0"
	"names --time-unit=B --threshold=0.1"
	"names --time-unit=i --detailed-freq=2 --threshold=3"
	"names_O2 --time-unit=B --threshold=0"
	"pages --pages-as-heap=yes --time-unit=B"
	"pages --pages-as-heap=yes --threshold=0 --detailed-freq=1 --max-snapshots=100"
	"nothing --time-unit=ms"
	"nothing --time-unit=B"
)

# Options for ms_print and ptmem-report.
views=(
	""
	"--threshold=0" "--threshold=0.0%" "--threshold=.5" "--threshold=3.125%" "--threshold=10" "--threshold=50."
	"--threshold=100" "--threshold=0.999" "--threshold=007"
	"--x=4" "--y=4" "--x=4 --y=4" "--x=5" "--x=6 --y=7" "--x=100 --y=10" "--x=1000 --y=1000" "--x=0080"
	"--y=25" "--y=29" "--x=71 --y=43" "--x=133 --y=57" "--y=30 --y=11 --x=9"
	"--threshold=5 --x=40 --y=33" "--threshold=0 --x=17 --y=5"
)

digest() {
	sha256sum | cut -c1-32
}

compare() { # FILE VIEW...
	local file=$1
	shift
	"$report" "$@" "$file" >printed 2>printed.err
	local got=$?
	local given answer
	given=$({ printf '%s\0' "$file" "$@"; cat "$file" 2>/dev/null; } | digest)
	answer=$({ echo $got; cat printed; } | digest)
	if [ "${answers[$given]:-}" = "$answer" ]; then
		passed=$((passed + 1))
		return
	fi
	[ ! -e "$file" ] || sed '/^#/!s/#/\x01/g' "$file" >copy/"$file"
	(cd copy && ms_print "$@" "$file") >expected.raw 2>expected.err
	local want=$?
	tr '\001' '#' <expected.raw >expected
	if [ $want = $got ] && cmp -s expected printed; then
		echo "$given $answer" >>confirmed
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAIL $file, options '$*': status $want and $got"
	cat printed.err
	diff expected printed | head -5
}

# Names of Rust and C++ with '#', and what else may confuse a reader.
cat >hashes <<'EOF'
desc: --comment=a#b
cmd: ./prog --color #fff
time_unit: ms
#-----------
snapshot=0
#-----------
time=0
mem_heap_B=100
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=peak
n2: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 60 0x10: names::main::{closure#0} (names.rs:40)
  n0: 60 0x11: pick(int)::{lambda(int)#1}::operator()(int) const (in /opt/a#b (c).so)
 n0: 40 0x12: # (a.c:1)
EOF

number=0
for profile in "${profiles[@]}"; do
	read -r program options <<<"$profile"
	number=$((number + 1))
	# shellcheck disable=SC2086 # the options are words
	if [ -z "$is_kept" ] && ! valgrind -q --tool=massif $options --massif-out-file=file.$number ./"$program" 'an  argument' >/dev/null; then
		echo "FAIL valgrind cannot profile: $profile"
		failed=$((failed + 1))
		continue
	fi
	for i in "${!views[@]}"; do
		[ $number = 4 ] || [ $((i % 4)) = $((number % 4)) ] || [ -n "${PTMEM_ALL_VIEWS:-}" ] || continue
		# shellcheck disable=SC2086
		compare file.$number ${views[i]}
	done
done
cp "$golden"/*.massif .
for file in *.massif; do
	for view in "" "--threshold=0" "--x=40 --y=10 --threshold=20"; do
		# shellcheck disable=SC2086
		compare "$file" $view
	done
done

compare hashes
compare hashes --threshold=0
grep -qF 'names::main::{closure#0} (names.rs:40)' printed || { echo "FAIL a name is cut at '#'"; failed=$((failed + 1)); }

# What both refuse, with ms_print's status.
for view in "--x=3" "--x=1001" "--x=" "--x" "--x=4.5" "--x=-4" "--y=abc" "--threshold=101" "--threshold=" "--threshold=1e1" \
	"--threshold=5%%" "--unknown" "--X=9"; do
	# shellcheck disable=SC2086
	compare file.1 $view
done
compare absent
head -c 300 file.1 >truncated
printf 'desc: a\n' >no_command
printf 'desc: a\ncmd: b\n\n#x\n' >no_unit
: >empty
for file in truncated no_command no_unit empty; do
	compare $file
done
if [ "${PTMEM_PEERS:-}" = ask ] && [ $failed = 0 ]; then
	mkdir -p "$kept" && LC_ALL=C sort -u confirmed >"$kept/answers" && echo "$depends" >"$kept/depends" &&
		tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cJf "$kept/files.tar.xz" file.*
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
