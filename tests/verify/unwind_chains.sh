#!/bin/sh
# Walks stacks through a C library without CFI (musl), from breakpoints at known
# depths: the chains must be complete and hold the functions of trap_chains.c.
# Run tests/verify/unwind.sh first, which builds the tool; MODE as for make.
set -e
cd "$(dirname "$0")/../.."
out=build/${MODE:-release}/tests/verify failed=0
no_cfi='-fno-asynchronous-unwind-tables -fno-unwind-tables'

# check NAME PATTERN...: the tool's output, line by line
check() {
	name=$1
	shift
	timeout 20 "$out/unwind_verify" trap "$out/chains" >"$out/log" 2>/dev/null
	number=0
	for pattern in "$@"; do
		number=$((number + 1))
		sed -n "${number}p" "$out/log" | grep -Eq "^$pattern \(complete\)\$" && continue
		echo "$name: stack $number is not '$pattern': $(sed -n "${number}p" "$out/log")"
		failed=1
	done
	[ "$(wc -l <"$out/log")" = "$number" ] || { echo "$name: more stacks than $number"; failed=1; }
	echo "$name: $number stacks"
}

gcc -O2 tests/verify/trap_chains.c -o "$out/chains" -pthread
check glibc 'compare .*sort main .*_start' 'compare search main .*_start' 'handler .*main .*_start' \
	'compare search thread [^ ]+ [^ ]+' 'at_exit .*exit .*_start'
command -v musl-gcc >/dev/null || { echo "musl skipped: no musl-gcc (Debian: musl-tools)"; exit $failed; }
for flags in '-O2' '-O0' '-O2 -static' "-O2 $no_cfi" "-O0 $no_cfi -static" "-O2 $no_cfi -fno-omit-frame-pointer"; do
	musl-gcc $flags tests/verify/trap_chains.c -o "$out/chains"
	check "musl $flags" 'compare [^ ]+ [^ ]+ sort main [^ ]+ [^ ]+' 'compare bsearch search main [^ ]+ [^ ]+' \
		'handler [^ ]+ [^ ]+ raise main [^ ]+ [^ ]+' 'compare bsearch search thread [^ ]+ [^ ]+' \
		'at_exit [^ ]+ exit [^ ]+ [^ ]+'
done
exit $failed
