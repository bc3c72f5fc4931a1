#!/bin/bash
# In the virtual machine of scripts/arm64-vm: programs that know their own totals under ptmem, which must have the same, programs
# to which ptmem attaches, and exceptions. It is slow there to start a program, so bash does itself what it can.
#
#	arm64.sh DIRECTORY [ATTACHES KILLS [PART...]]
#
# ptmem and the programs are in DIRECTORY. Prints "N passed, N failed". Parts [all]: attached throws throws_late paths totals
# verified pair real unit.
set -u
cd "$1" || exit 2
passed=0 failed=0
trap : PIPE # a program that has died is said to be dead by what it does not answer

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

# -- a running process; fd 9 and 8: the input and output of the program --

mkfifo in out.fifo idle
exec 7<>idle
nap() { read -r -t "$1" -u 7; }

# run PROGRAM...: its process id in $pid
run() {
	"$@" <in >out.fifo 2>err.program &
	pid=$!
	exec 9>in 8<out.fifo
}

say() {
	[ "$1" = - ] || printf '%s' "$1" >&9
	read -r -t 900 answer <&8 || answer="no answer, $(cat err.program)"
}

field() {
	[[ " $answer " =~ \ (expect:\ )?$1=([0-9]+)\  ]] && echo "${BASH_REMATCH[2]}"
}

# attach OPTION...: in $tracer; returns when it is attached
attach() {
	: >err
	./ptmem --probes="$probes" "$@" -p "$pid" >out.tracer 2>err &
	tracer=$!
	until [[ $(<err) == *"attached to process"* ]]; do
		kill -0 $tracer || { cat err; return; }
		nap 0.01
	done
}

# detach NAME
detach() {
	kill -TERM $tracer
	wait $tracer
	check "$1: status of ptmem" $? 0
}

# In $state: its tracer, whether it handles SIGTRAP, and what its threads block, but for SIGALRM, whose handler may run.
state_of_program() {
	state=$(sed -n '/^TracerPid:/p; /^SigCgt:/p; s/^\(SigBlk:.*\).\(...\)$/\1-\2/p' /proc/"$pid"/task/*/status 2>&1)
}

# Waits until process $pid is as in $untraced.
await_untraced() {
	for ((try = 0; try < 500; try++)); do
		state_of_program
		[ "$state" != "$untraced" ] || return 0
		nap 0.01
	done
}

leave_program() {
	exec 9>&-
	wait "$pid"
	check "$1: status of the program" $? 0
	cat err.program
}

attaches=${2:-100} kills=${3:-50}
parts=${*:4}

attached_tests() {
	run bin/server-O2 8
	say -
	say p # all threads have begun
	nap 0.1
	state_of_program
	untraced=$state
	say c

	# exact NAME OPTION...: the threads are parked at attach and detach; the allocations between are those that the program counted
	exact() {
		local name=$1 before leaks
		shift
		say p
		before=$(field allocations)
		attach --stats -o massif.out "$@"
		for letter in c l l l l p; do say $letter; done
		leaks=$(($(field allocations) - before))
		! declare -F while_attached >/dev/null || while_attached
		detach "$name"
		check "$name: allocations" "$(number err allocations)" "$leaks"
		check "$name: complete stacks" "$(number err 'complete stacks')" "$(number err stacks)"
		await_untraced
		check "$name: the program is left as it was" "$state" "$untraced"
		say c
		echo "ran $name"
	}

	exact "attached"
	exact "attached, recorded" --record=recording
	./ptmem-report --format=text recording >out 2>err.report
	check "attached, recorded: the report" "$?" 0
	check "attached, recorded: server_leak is in it" "$(grep -c server_leak out | sed 's/[1-9][0-9]*/some/')" some

	metrics() {
		exec 6<>/dev/tcp/127.0.0.1/9123
		printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n' "$(cat token)" >&6
		cat <&6 >metrics
		exec 6>&-
	}
	while_attached() {
		metrics
		check "attached, --listen: /metrics" "$(grep -c '^ptmem_' metrics | sed 's/[1-9][0-9]*/some/')" some
	}
	# with a token, since this kernel has no module that says whose a connection is
	(umask 077 && echo of-this-virtual-machine >token)
	exact "attached, --listen" --listen=127.0.0.1:9123 --listen-token=token
	unset -f while_attached

	exact "attached, --leak-check" --leak-check=full
	check "attached, --leak-check: server_leak" "$(grep -c server_leak err | sed 's/[1-9][0-9]*/some/')" some

	./ptmem --inspect -p "$pid" >out 2>err
	check "--inspect: status" $? 0
	check "--inspect: heap" "$(grep -ci 'heap' out | sed 's/[1-9][0-9]*/some/')" some
	await_untraced
	check "--inspect: the program is left as it was" "$state" "$untraced"
	echo "ran --inspect"

	for ((round = 1; round <= kills; round++)); do
		./ptmem -q --probes=$probes -o massif.out -p "$pid" 2>err &
		tracer=$!
		printf -v pause '0.%03d' $((RANDOM % 150))
		nap $pause
		kill -KILL $tracer
		wait $tracer 2>/dev/null
		await_untraced
		check "killed, round $round after $pause s" "$state" "$untraced"
		((round % 10)) || echo "killed $round times"
		[ -d "/proc/$pid" ] || break
	done
	for ((round = 1; round <= attaches; round++)); do
		./ptmem -q --probes=$probes --duration=0.005 -o massif.out -p "$pid" 2>err
		check "attached, round $round: status" $? 0
		await_untraced
		check "attached, round $round" "$state" "$untraced"
		((round % 10)) || echo "attached $round times"
		[ -d "/proc/$pid" ] || break
	done
	say i
	check "attached and killed: waits that were interrupted" "$answer" interrupted=0
	say k
	check "attached and killed: signals" "$answer" signals=10
	exact "attached after the rounds"
	printf q >&9
	cat <&8 >out
	leave_program server
}

# -- exceptions: operators new that throw, in all ways, and what the oracle counted inside --

oracle_totals() {
	od -A n -t u8 -v -w8 -j 24 -N 48 oracle.* | awk '{ v[NR] = $1 } END {
		print "allocations=" v[1] " reallocations=" v[2] " frees=" v[3] " bytes=" v[4] " failed=" v[5] " unknown=" v[6] }'
}

throws_tests() {
	for level in O0 pac; do
		rm -f oracle.*.*
		ORACLE_DIR=$PWD LD_PRELOAD=$PWD/liboracle.so "bin/throws-$level" >out
		check "throws-$level: output, alone" "$(cat out)" OK
		for probes in break jump; do
			name="throws-$level $probes"
			./ptmem --probes=$probes --stats -o massif.out "bin/throws-$level" >out 2>err
			check "$name: status" $? 0
			check "$name: output" "$(cat out)" OK
			check "$name" "$(totals err | sed 's/ live=.*//') unknown=$(number err 'unknown frees')" "$(oracle_totals)"
			echo "ran $name"
		done
	done
}

# -- and ptmem attaches, and leaves, while one is thrown --

left_inside() {
	run "bin/throws_late-$1" "$2"
	say -
	check "$name: start" "$answer" ready
	attach -o massif.out
	say x
	check "$name: inside" "$answer" inside
	if [ "$3" = TERM ]; then
		detach "$name"
	else
		kill -KILL $tracer
		wait $tracer
	fi 2>/dev/null
	say x
	check "$name: output" "$answer" OK
	leave_program "$name"
}

throws_late_tests() {
	for where in before passing caught; do
		for signal in TERM KILL; do
			name="throws_late $where SIG$signal"
			# killed before it throws, ptmem leaves a stub that no exception passes
			[ "$where $signal" = "before KILL" ] || left_inside O0 $where $signal
		done
		echo "ran throws_late $where"
	done
}

# -- the call path of a known call: five times down, below main --

paths_tests() {
	for level in O1 pac records; do
		./ptmem -q --probes=break -o massif.out "bin/descent-$level" >out 2>err
		check "descent-$level: status" $? 0
		check "descent-$level: its path" "$(grep -oE '(down|main) \(' massif.out | head -6 | tr -d ' (\n')" \
			downdowndowndowndownmain
	done
	grep -qw paca /proc/cpuinfo
	check "the CPU signs return addresses" $? 0
}

# -- programs that know their totals: PROGRAM THREADS ARGUMENTS... --

# profile PROBES: of $program; the folded stacks in folded.PROBES
profile() {
	name="$program $1"
	rm -f truth massif.out
	# shellcheck disable=SC2086
	TRUTH=truth ./ptmem --probes=$1 --stats --folded="folded.$1" --view=total -o massif.out "bin/$program" $arguments \
		>out 2>err </dev/null
	check "$name: status" $? 0
	want=$(sed -n 's/^expect: //p' truth)
	if [ "$threads" = 0 ]; then
		check "$name" "$(totals err)" "$want"
	else
		check "$name" "$(totals err | sed 's/peak=.*/peak=-/')" "$(with_threads "$(totals err)" "$want" "$threads")"
	fi
	check "$name: complete stacks" "$(number err 'complete stacks')" "$(number err stacks)"
	echo "ran $name"
}

totals_tests() {
	while read -r program threads arguments; do
		profile break
		profile jump
		check "$name: functions with jumps" "$(number err 'functions with jumps')" 9
		# threads allocate at random
		[ "${program%-*}" = threads ] || check "$name: call paths" "$(sort folded.jump)" "$(sort folded.break)"
	done <programs
}

# -- stacks walked again: those at breakpoints by libunwind, those of pads also from a copy --

verified_tests() {
	while read -r program every arguments; do
		for probes in break jump; do
			name="$program --verify-stacks $probes"
			# shellcheck disable=SC2086
			TRUTH=truth ./ptmem --probes=$probes --verify-stacks=$every --stats -o massif.out "bin/$program" $arguments \
				>out 2>err </dev/null
			check "$name: status" $? 0
			check "$name: differing stacks" "$(number err 'differing stacks')" 0
			check "$name: verified stacks" "$(number err 'verified stacks' | sed 's/^[1-9][0-9]*$/some/')" some
			echo "ran $name: $(number err stacks) stacks,$(sed -n 's/^ptmem:   verified  */ /p' err)"
			grep 'by libunwind at' err
		done
	done <verified
}

# -- programs of the distribution: breakpoints and jumps have the same totals and call paths --

# real NAME OPTION COMMAND...; OPTION: of ptmem
real() {
	local of_break option=$2
	name=$1
	shift 2
	for probes in break jump; do
		rm -rf repository
		./ptmem --probes=$probes "$option" --stats --folded="folded.$probes" --view=total -o massif.out "$@" \
			>"out.$probes" 2>err </dev/null
		check "$name $probes: status" $? 0
		[ $probes = jump ] || of_break=$(totals err)
		echo "ran $name $probes: $(totals err), $(number err 'complete stacks') of $(number err stacks) stacks complete," \
			"$(number err 'functions with jumps') functions with jumps"
	done
	check "$name: totals" "$(totals err)" "$of_break"
	check "$name: output" "$(cat out.jump)" "$(cat out.break)"
	check "$name: call paths" "$(sort folded.jump | sha256sum)" "$(sort folded.break | sha256sum)"
	echo "ran $name: $(wc -l <folded.jump) call paths, $(sort folded.jump | sha256sum | cut -c -16)"
	diff <(sort folded.break) <(sort folded.jump) | cut -c -600 | head -10
}

real_tests() {
	export PYTHONHASHSEED=0
	real sqlite3 --view=total sqlite3 :memory: \
		"create table t(a integer primary key, b text); insert into t(b) values('x'),('y'),('z'); select count(*), b from t group by b"
	real git --view=total git -c init.defaultBranch=main init -q repository
	real python3 --python-malloc=keep python3 -S -E -c 'print(len([str(i) * 20 for i in range(300)]))'
}

# -- a malloc and its free: instructions rather than time, since the clock counts these --

pair_tests() {
	echo "ran pair, alone: $(bin/pair-O2 100000)"
	echo "ran pair, jump: $(./ptmem -q --probes=jump -o massif.out bin/pair-O2 100000)"
	echo "ran pair, break: $(./ptmem -q --probes=break -o massif.out bin/pair-O2 500)"
}

# -- unit tests of what depends on the CPU --

unit_tests() {
	for program in unit/test_*; do
		"$program" 2>&1 | grep -v 'RUN  '
		check "${program#*/}: status" "${PIPESTATUS[0]}" 0
		echo "ran ${program#*/}"
	done
}

for part in ${parts:-attached throws throws_late paths totals verified pair real unit}; do
	if [ "$part" = attached ]; then
		for probes in break jump; do attached_tests; done
	else
		probes='break'
		"${part}_tests"
	fi
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
