# bash completion for mleak: the program itself says what can stand at the cursor

_mleak()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prefix= line
	local IFS=$'\n'

	COMPREPLY=()
	[[ $cur == = ]] && cur=
	# only where '=' does not end a word
	[[ $cur == --*=* ]] && prefix=${cur%%=*}= cur=${cur#*=}
	for line in $("${COMP_WORDS[0]/#\~/$HOME}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
		case $line in
		:files) compopt -o filenames && COMPREPLY=($(compgen -P "$prefix" -f -- "$cur")) ;;
		:dirs) compopt -o filenames && COMPREPLY=($(compgen -P "$prefix" -d -- "$cur")) ;;
		:command*) _mleak_command $((${line#:command } + 1)) ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done
}

# Complete the command line of another program, whose name is word $1: as that program's own
# completion does, where bash-completion is loaded.
_mleak_command()
{
	local IFS=$' \t\n'

	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset "$1"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		IFS=$'\n'
		compopt -o filenames
		if (($1 == COMP_CWORD)); then
			COMPREPLY=($(compgen -c -- "$cur"))
		else
			COMPREPLY=($(compgen -f -- "$cur"))
		fi
	fi
}

complete -F _mleak mleak
