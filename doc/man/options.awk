# options.awk - put the options of a command where its manual page says @OPTIONS@
#
# Reads what `mleak --list-options COMMAND` prints, then the page: letter, name, argument and help
# of each option, tabs between.

function escape(text)
{
	gsub(/[\\_*#`<>@~^]/, "\\\\&", text)
	return text
}

FNR == 1 { file++ }

file == 1 {
	names = ($1 ? "*-" $1 "*, " : "") "*--" $2 "*"
	shown = $3 ~ /^\[/ ? "[" escape(substr($3, 2, length($3) - 2)) "]" : $3 ? " _" escape($3) "_" : ""
	options = options names shown "\n\t" escape($4) "\n\n"
	next
}

$0 == "@OPTIONS@" {
	printf "%s", options
	next
}

{ print }
