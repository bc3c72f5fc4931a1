# fish completion for ptmem; scripts/docs compares it with --help.

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
complete -c ptmem -n __ptmem_no_program -s p -l pid -x -a '(__fish_complete_pids)' -d 'Attach to a running process'
complete -c ptmem -n __ptmem_no_program -l earlier-blocks -x -a 'yes no' -d 'With -p: profile blocks from before'
complete -c ptmem -n __ptmem_no_program -l inspect -F -d 'With -p, or of a core file: what memory consists of'
complete -c ptmem -n __ptmem_no_program -l inspect-at-exit -d 'Profile, and show at the end what memory consists of'
complete -c ptmem -n __ptmem_no_program -l inspect-out -r -F -d 'Where that goes'
complete -c ptmem -n __ptmem_no_program -l duration -x -d 'With -p: detach after this time'
complete -c ptmem -n __ptmem_no_program -l monitor -x -a '(__fish_complete_pids)' -d 'Send a command to the ptmem of a process'
complete -c ptmem -n __ptmem_no_program -l trace-children -x -a 'yes no' -d 'Also profile programs that it executes'
complete -c ptmem -n __ptmem_no_program -l trace -x -a 'heap brk mmap faults' -d 'What to trace'
complete -c ptmem -n __ptmem_no_program -l trace-children-skip -x -d 'Do not follow programs with these names'
complete -c ptmem -n __ptmem_no_program -l trace-children-skip-by-arg -x -d 'Do not follow programs with such an argument'
complete -c ptmem -n __ptmem_no_program -l soname-synonyms -x -d 'Watch only these allocators'
complete -c ptmem -n __ptmem_no_program -l mempools -x -a 'yes no' -d 'Count blocks of announced memory pools'
complete -c ptmem -n __ptmem_no_program -l running-on-valgrind -x -a 'yes no' -d 'Value of RUNNING_ON_VALGRIND'
complete -c ptmem -n __ptmem_no_program -l probes -x -a 'auto break jump' -d 'How calls are caught'
complete -c ptmem -n __ptmem_no_program -l heap-sample -x -d 'Record a sample of the allocations, one every so many bytes'
complete -c ptmem -n __ptmem_no_program -l seed -x -d 'Which allocations are samples'
complete -c ptmem -n __ptmem_no_program -l ring -x -d 'Size of the buffer between program and ptmem'
complete -c ptmem -n __ptmem_no_program -l time-unit -x -a 'ms B i' -d 'Unit of the time axis'
complete -c ptmem -n __ptmem_no_program -l depth -x -d 'Frames that are kept of a call path'
complete -c ptmem -n __ptmem_no_program -l threshold -x -d 'Merge call sites below this percentage'
complete -c ptmem -n __ptmem_no_program -l peak-inaccuracy -x -d 'Record a new peak if it exceeds the last by this percentage'
complete -c ptmem -n __ptmem_no_program -l pages-as-heap -x -a 'yes no' -d 'Count mapped pages instead of heap blocks'
complete -c ptmem -n __ptmem_no_program -l stacks -x -a 'yes no' -d 'Profile the stacks of all threads'
complete -c ptmem -n __ptmem_no_program -l stack-sample -x -a 'no' -d 'Sample stacks between calls at this interval'
complete -c ptmem -n __ptmem_no_program -l peak-at-exit -x -a 'yes no' -d 'Whether the exit may be the peak'
complete -c ptmem -n __ptmem_no_program -l heap -x -a 'yes no' -d 'Profile the heap'
complete -c ptmem -n __ptmem_no_program -l detailed-freq -x -d 'Every Nth snapshot has a call tree'
complete -c ptmem -n __ptmem_no_program -l max-snapshots -x -d 'Number of snapshots that are kept'
complete -c ptmem -n __ptmem_no_program -l heap-admin -x -d 'Assumed overhead for each block'
complete -c ptmem -n __ptmem_no_program -l alignment -x -d 'Assumed alignment of blocks'
complete -c ptmem -n __ptmem_no_program -l realloc-zero-bytes-frees -x -a 'yes no' -d 'Whether realloc(p, 0) frees p'
complete -c ptmem -n __ptmem_no_program -l alloc-fn -x -d 'Treat this function as an allocation function'
complete -c ptmem -n __ptmem_no_program -l ignore-fn -x -d 'Do not count what this function allocates'
complete -c ptmem -n __ptmem_no_program -l demangle -x -a 'yes no' -d 'Print names as in the source'
complete -c ptmem -n __ptmem_no_program -l show-below-main -x -a 'yes no' -d 'Show call paths before main'
complete -c ptmem -n __ptmem_no_program -l fullpath-after -x -d 'Print paths of source files after this text'
complete -c ptmem -n __ptmem_no_program -l read-inline-info -x -a 'yes no' -d 'Show inlined functions'
complete -c ptmem -n __ptmem_no_program -l extra-debuginfo-path -r -a '(__fish_complete_directories)' -d 'Also look for debug files here'
complete -c ptmem -n __ptmem_no_program -s o -l massif-out-file -r -F -d 'Where the profile goes'
complete -c ptmem -n __ptmem_no_program -l xtree-memory -x -a 'none allocs full' -d 'Write memory by call path for kcachegrind'
complete -c ptmem -n __ptmem_no_program -l xtree-memory-file -r -F -d 'Where --xtree-memory goes'
complete -c ptmem -n __ptmem_no_program -l xtree-compress-strings -x -a 'yes no' -d 'Write each name once'
complete -c ptmem -n __ptmem_no_program -l free-stacks -d 'Record which call paths release blocks'
complete -c ptmem -n __ptmem_no_program -l html -r -F -d 'Write an interactive report for a browser'
complete -c ptmem -n __ptmem_no_program -l record -r -F -d 'Record everything: any moment, any range of time'
complete -c ptmem -n __ptmem_no_program -l events -r -F -d 'Write every event as text'
complete -c ptmem -n __ptmem_no_program -l replay -r -F -d 'Make the profile from a file of events'
complete -c ptmem -n __ptmem_no_program -l memusage -d 'Print calls, bytes and sizes, like memusage'
complete -c ptmem -n __ptmem_no_program -l memusage-out -r -F -d 'Where --memusage goes'
complete -c ptmem -n __ptmem_no_program -l data -r -F -d 'Write live bytes and stack depth of every call'
complete -c ptmem -n __ptmem_no_program -l data-buffer -x -d 'Records collected before they are written'
complete -c ptmem -n __ptmem_no_program -s m -l mmap -d 'Count mmap, mremap and munmap, too'
complete -c ptmem -n __ptmem_no_program -l no-timer -d 'Do not sample stacks between calls'
complete -c ptmem -n __ptmem_no_program -l progname -x -d 'Count only in programs of this name'
complete -c ptmem -n __ptmem_no_program -l sample -d 'Sample /proc/PID/status at this interval'
complete -c ptmem -n __ptmem_no_program -l sample-fields -x -d 'Fields of /proc/PID/status'
complete -c ptmem -n __ptmem_no_program -l sample-out -r -F -d 'Where samples go'
complete -c ptmem -n __ptmem_no_program -l leaks -d 'List the blocks that are in use at the end'
complete -c ptmem -n __ptmem_no_program -l leak-check -d 'Also find blocks that no pointer leads to'
complete -c ptmem -n __ptmem_no_program -l leaks-out -r -F -d 'Where lists of leaks go'
complete -c ptmem -n __ptmem_no_program -l error-exitcode -x -d 'Exit status if bytes are definitely lost'
complete -c ptmem -n __ptmem_no_program -l folded -r -F -d 'Write folded stacks'
complete -c ptmem -n __ptmem_no_program -l flame -r -F -d 'Draw a flame graph'
complete -c ptmem -n __ptmem_no_program -l view -x -a 'live peak exit total count' -d 'What folded stacks and flame graphs show'
complete -c ptmem -n __ptmem_no_program -l top -d 'Show a live table of call sites'
complete -c ptmem -n __ptmem_no_program -l log-file -r -F -d 'Where messages go'
complete -c ptmem -n __ptmem_no_program -l log-fd -x -d 'Descriptor for messages'
complete -c ptmem -n __ptmem_no_program -l child-silent-after-fork -x -a 'yes no' -d 'No messages about forked children'
complete -c ptmem -n __ptmem_no_program -l trace-malloc -x -a 'yes no' -d 'Print a message for each call'
complete -c ptmem -n __ptmem_no_program -l stats -d 'Print statistics about ptmem itself'
complete -c ptmem -n __ptmem_no_program -s v -l verbose -d 'Print more'
complete -c ptmem -n __ptmem_no_program -s q -l quiet -d 'Print only warnings and errors'
complete -c ptmem -n __ptmem_no_program -l color -x -a 'auto always never' -d 'Colour in messages'
complete -c ptmem -n __ptmem_no_program -l no-rc -d 'Ignore ptmemrc and PTMEM_OPTS'
complete -c ptmem -n __ptmem_no_program -l command-line-only -x -a 'yes no' -d 'The same as --no-rc'
complete -c ptmem -n __ptmem_no_program -s h -l help -d 'Print the options'
complete -c ptmem -n __ptmem_no_program -s V -l version -d 'Print the version'
