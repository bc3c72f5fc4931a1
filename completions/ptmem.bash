# bash completion for ptmem and ptmem-report; the options are from their tables.

_ptmem_options="
@bash ptmem@
"
_ptmem_report_options="
@bash ptmem-report@
"

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
@bash-values ptmem@
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
