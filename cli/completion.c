/*
 * completion: a script for a shell. It asks `zmqcat completion words` for each word, so that there
 * is one place that knows what may stand where.
 */
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "say.h"
#include "verbs.h"

static const char bash_script[] =
    "# For bash: source <(zmqcat completion bash)\n"
    "_zmqcat() {\n"
    "    local words=() cur part lead line\n"
    "    read -ra words <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
    "    [[ ${COMP_LINE:COMP_POINT-1:1} == ' ' ]] && words+=('')\n"
    "    cur=${words[${#words[@]}-1]}\n"
    "    # What bash replaces: less than the word where that has a : or =.\n"
    "    part=${COMP_WORDS[COMP_CWORD]}\n"
    "    [[ $part == [:=] ]] && part=\n"
    "    lead=${cur%\"$part\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r line _; do\n"
    "        case $line in\n"
    "        :files)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done \\\n"
    "                < <(compgen -f -- \"$part\") ;;\n"
    "        :commands)\n"
    "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done \\\n"
    "                < <(compgen -c -- \"$part\") ;;\n"
    "        *) COMPREPLY+=(\"$(printf %q \"${line#\"$lead\"}\")\") ;;\n"
    "        esac\n"
    "    done < <(\"${words[0]}\" completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _zmqcat zmqcat\n";

static const char zsh_script[] =
    "#compdef zmqcat\n"
    "# For zsh: source <(zmqcat completion zsh), or this as _zmqcat in a folder of fpath.\n"
    "_zmqcat() {\n"
    "    local line\n"
    "    local -a lines items\n"
    "    lines=(\"${(@f)$(\"${(Q)words[1]}\" completion words -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    for line in \"${lines[@]}\"; do\n"
    "        case $line in\n"
    "        '') ;;\n"
    "        :files) _files; return ;;\n"
    "        :commands) _command_names -e; return ;;\n"
    "        *$'\\t'*) items+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        *) items+=(\"${line//:/\\\\:}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    _describe zmqcat items\n"
    "}\n"
    "if [[ ${funcstack[1]} == _zmqcat ]]; then\n"
    "    _zmqcat \"$@\"\n"
    "else\n"
    "    compdef _zmqcat zmqcat\n"
    "fi\n";

static const char fish_script[] =
    "# For fish: zmqcat completion fish | source\n"
    "function __zmqcat_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l cur (commandline -ct)\n"
    "    for line in ($words[1] completion words -- $words[2..-1] \"$cur\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                __fish_complete_path \"$cur\"\n"
    "            case :commands\n"
    "                complete -C \"$cur\"\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c zmqcat -f -a '(__zmqcat_words)'\n";

int zc_completion_run(const struct zc_args *args)
{
    static const struct {
        const char *shell, *script;
    } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    if (strcmp(args->rest[0], "words") == 0)
        return zc_complete_words(args->rest + 1, args->rest_count - 1);
    if (args->rest_count > 1)
        return zc_say_usage(args->verb, "too many arguments");
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(args->rest[0], shells[i].shell) != 0)
            continue;
        if (fputs(shells[i].script, stdout) >= 0 && fflush(stdout) == 0)
            return 0;
        return zc_say_fail(1, args->verb, NULL, "standard output cannot be written");
    }
    return zc_say_usage(args->verb, "say `bash`, `zsh` or `fish`");
}
