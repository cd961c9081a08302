# Completion of slurmgen for fish. `slurmgen __complete` says what is offered.
function __slurmgen_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    set -l reply ($program __complete $words $current 2>/dev/null)
    if test "$reply[1]" = files
        set -l option (string match -r -- '^--[^=]*=' $current)
        for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $current))
            echo "$option$path"
        end
    else
        printf '%s\n' $reply[2..-1]
    end
end

complete --command slurmgen --no-files --arguments '(__slurmgen_complete)'
