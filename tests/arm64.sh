#!/bin/bash
# In the virtual machine of scripts/arm64-vm: programs that know their own totals under ptmem, which must have the same.
#
#	arm64.sh DIRECTORY       ptmem and the programs are there; prints "N passed, N failed"
set -u
cd "$1" || exit 2
passed=0 failed=0

# The totals of --stats in the form of a program's "expect:".
totals() {
	sed -n 's/^ptmem: \([a-z ]*\): \([0-9]*\)$/\1=\2/p' "$1" | awk -F= '{ v[$1] = $2 } END {
		print "allocations=" v["allocations"] " reallocations=" v["reallocations"] " frees=" v["frees"] \
		      " bytes=" v["allocated bytes"] " failed=" v["failed"] " live=" v["live bytes"] \
		      " blocks=" v["live blocks"] " peak=" v["peak bytes"] }'
}

number() { sed -n "s/^ptmem: $2: //p" "$1"; }

# check NAME HAVE WANT
check() {
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL %s:\n  have %s\n  want %s\n' "$1" "$2" "$3"
	fi
}

# What glibc allocates for threads, one block of 272 bytes for each stack (their dtv), is added to the totals $2 of a program
# with at most $3 threads: as many as the totals $1 have more.
with_threads() {
	printf '%s\n%s\n' "$1" "$2" | sed 's/peak=.*/peak=-/' | awk -v most="$3" '{
		for (i = 1; i <= NF; i++) { split($i, word, "="); name[i] = word[1]; v[NR, word[1]] = word[2] }
	} END {
		n = v[1, "allocations"] - v[2, "allocations"]
		if (n < 0 || n > most) n = 0
		v[2, "allocations"] += n; v[2, "blocks"] += n; v[2, "bytes"] += 272 * n; v[2, "live"] += 272 * n
		for (i = 1; i in name; i++) printf("%s%s=%s", (i > 1 ? " " : ""), name[i], v[2, name[i]])
	}'
}

# PROGRAM THREADS ARGUMENTS...
while read -r program threads arguments; do
	name=$program
	rm -f truth massif.out
	# shellcheck disable=SC2086
	TRUTH=truth ./ptmem --probes=break --stats -o massif.out "bin/$program" $arguments >out 2>err </dev/null
	check "$name: status" $? 0
	want=$(sed -n 's/^expect: //p' truth)
	if [ "$threads" = 0 ]; then
		check "$name" "$(totals err)" "$want"
	else
		check "$name" "$(totals err | sed 's/peak=.*/peak=-/')" "$(with_threads "$(totals err)" "$want" "$threads")"
	fi
	check "$name: complete stacks" "$(number err 'complete stacks')" "$(number err stacks)"
	echo "ran $name"
done <programs

# The call path of a known call: five times down, below main.
./ptmem -q --probes=break -o massif.out ./descent >out 2>err
check "descent: status" $? 0
check "descent: its path" "$(grep -oE '(down|main) \(' massif.out | head -6 | tr -d ' (\n')" downdowndowndowndownmain

./ptmem --probes=jump true >out 2>err
check "pads: status" $? 1
check "pads: message" "$(cat err)" "ptmem: --probes=jump: pads are not supported on this CPU; use --probes=break"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
