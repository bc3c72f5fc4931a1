# bash completion for ptmem and ptmem-report; scripts/docs compares it with --help.

_ptmem_options="--pid= --follow= --duration= --earlier-blocks= --inspect --inspect= --inspect-at-exit --inspect-pointers --inspect-copy= --inspect-out= --monitor= --trace-children= --follow-exec= --trace-children-skip= --trace-children-skip-by-arg=
	--trace= --soname-synonyms= --mempools= --running-on-valgrind= --probes= --heap-sample= --budget= --max-wait= --seed= --ring= --verify-stacks --verify-stacks=
	--time-unit= --pages-as-heap= --depth= --threshold= --peak-inaccuracy= --peak-at-exit= --detailed-freq= --max-snapshots=
	--heap= --stacks= --stack-sample= --heap-admin= --alignment= --realloc-zero-bytes-frees= --alloc-fn= --ignore-fn=
	--demangle= --show-below-main= --fullpath-after= --my-code= --not-my-code= --read-inline-info= --extra-debuginfo-path= --debuginfod=
	--massif-out-file= --xtree-memory= --xtree-memory-file= --xtree-compress-strings= --record= --record-every= --record-keep= --record-limit= --when= --free-stacks --html= --listen --listen= --listen-token= --listen-open --listen-linger= --events= --replay=
	--memusage --memusage-out= --data= --data-buffer= --mmap --no-timer --progname=
	--sample --sample= --sample-fields= --sample-out=
	--leaks --leaks= --leak-check --older-than= --show-leak-kinds= --leak-holders --suppressions= --gen-suppressions=
	--leaks-out= --error-exitcode= --folded= --flame= --view= --top --top=
	--log-file= --log-fd= --child-silent-after-fork= --trace-malloc=
	--stats --verbose --quiet --color= --no-rc --command-line-only= --help --version
	-p -o -m -v -q -h -V"
_ptmem_report_options="--threshold= --x= --y= --png= --svg= --x-size= --y-size= --title= --time-based --total --rss=
	--format= --at= --range= --older-than= --thread= --match= --temporary= --my-code= --not-my-code=
	--folded= --flame= --html= --snapshot= --diff --top= --help --version -t -T -h"

# The index of the first word that is neither an option nor an option's value, or nothing.
_ptmem_program() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)); return ;;
		-p | -o) ((i++)) ;;
		--*) if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((i += 2)); elif [[ ${COMP_WORDS[i]} == --pid ]]; then ((i++)); fi ;;
		-*) ;;
		*) echo "$i"; return ;;
		esac
	done
}

_ptmem_values() {
	case $1 in
	--pid | -p | --monitor) compgen -W "$(command ps -eo pid= 2>/dev/null)" -- "$2" ;;
	--trace-children | --follow-exec | --peak-at-exit | --heap | --stacks | --pages-as-heap | --realloc-zero-bytes-frees | --demangle | \
		--show-below-main | --read-inline-info | --debuginfod | --xtree-compress-strings | --child-silent-after-fork | \
		--trace-malloc | --command-line-only | --mempools | --running-on-valgrind) compgen -W "yes no" -- "$2" ;;
	--trace) compgen -W "heap brk mmap faults" -- "$2" ;;
	--probes) compgen -W "auto break jump" -- "$2" ;;
	--xtree-memory) compgen -W "none allocs full" -- "$2" ;;
	--time-unit) compgen -W "ms B i" -- "$2" ;;
	--show-leak-kinds) compgen -W "definite indirect possible reachable all" -- "$2" ;;
	--gen-suppressions) compgen -W "no yes all" -- "$2" ;;
	--color) compgen -W "auto always never" -- "$2" ;;
	--view) compgen -W "live peak exit total count" -- "$2" ;;
	--massif-out-file | -o | --xtree-memory-file | --extra-debuginfo-path | --log-file | --record | --events | --replay | \
		--memusage-out | --data | --sample-out | --leaks-out | --suppressions | --inspect | --inspect-out | --folded | --flame | --html | --listen-token) compgen -f -- "$2" ;;
	esac
}

_ptmem() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program
	program=$(_ptmem_program)
	COMPREPLY=()
	if [[ -n $program && $program -lt $COMP_CWORD ]]; then
		if declare -F _command_offset >/dev/null; then _command_offset "$program"; else compopt -o default; fi
		return
	fi
	if [[ $word == = ]]; then
		word= before=${COMP_WORDS[COMP_CWORD - 1]}
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $before != -p && $before != -o && $before != --pid ]]; then
		before=
	fi
	if [[ -n $before ]]; then
		mapfile -t COMPREPLY < <(_ptmem_values "$before" "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$_ptmem_options" -- "$word")
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	fi
}

_ptmem_report() {
	local word=${COMP_WORDS[COMP_CWORD]}
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$_ptmem_report_options" -- "$word")
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -F _ptmem ptmem
complete -o filenames -F _ptmem_report ptmem-report
