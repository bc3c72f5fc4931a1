# fish completion for ptmem; the options are from its table.

# True until the command line contains the program to run.
function __ptmem_no_program
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case -p -o --pid
                set skip 1
            case '-*'
            case '*'
                return 1
        end
    end
    return 0
end

complete -c ptmem -f -n __ptmem_no_program
complete -c ptmem -n __ptmem_no_program -a '(__fish_complete_command)'
complete -c ptmem -n 'not __ptmem_no_program' -a '(__fish_complete_subcommand --fcs-skip=1)'
@fish ptmem@
