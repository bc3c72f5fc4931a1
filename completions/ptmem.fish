# fish completion for ptmem; scripts/docs holds it against --help.

# True until the program to run stands in the command line.
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
complete -c ptmem -n __ptmem_no_program -l duration -x -d 'With -p: detach after these seconds'
complete -c ptmem -n __ptmem_no_program -l monitor -x -a '(__fish_complete_pids)' -d 'Say a command to the ptmem of a process'
complete -c ptmem -n __ptmem_no_program -l trace-children -x -a 'yes no' -d 'Go on in programs that are executed'
complete -c ptmem -n __ptmem_no_program -l trace -x -a 'heap brk mmap faults' -d 'What to trace'
complete -c ptmem -n __ptmem_no_program -l trace-children-skip -x -d 'But not in programs of these names'
complete -c ptmem -n __ptmem_no_program -l trace-children-skip-by-arg -x -d 'But not where an argument is like one of these'
complete -c ptmem -n __ptmem_no_program -l soname-synonyms -x -d 'Watch only these allocators'
complete -c ptmem -n __ptmem_no_program -l mempools -x -a 'yes no' -d 'Count blocks of announced memory pools'
complete -c ptmem -n __ptmem_no_program -l running-on-valgrind -x -a 'yes no' -d 'What RUNNING_ON_VALGRIND says'
complete -c ptmem -n __ptmem_no_program -l probes -x -a 'auto break jump' -d 'How calls are caught'
complete -c ptmem -n __ptmem_no_program -l ring -x -d 'Bytes of the buffer between program and ptmem'
complete -c ptmem -n __ptmem_no_program -l time-unit -x -a 'ms B i' -d 'Unit of the time axis'
complete -c ptmem -n __ptmem_no_program -l depth -x -d 'Frames of a call path'
complete -c ptmem -n __ptmem_no_program -l threshold -x -d 'Call sites below this percentage are put together'
complete -c ptmem -n __ptmem_no_program -l peak-inaccuracy -x -d 'A new peak exceeds the last by more percent'
complete -c ptmem -n __ptmem_no_program -l pages-as-heap -x -a 'yes no' -d 'Count mapped pages instead of heap blocks'
complete -c ptmem -n __ptmem_no_program -l peak-at-exit -x -a 'yes no' -d 'Whether the end may be the peak'
complete -c ptmem -n __ptmem_no_program -l heap -x -a 'yes no' -d 'Profile the heap'
complete -c ptmem -n __ptmem_no_program -l detailed-freq -x -d 'Every Nth snapshot has a call tree'
complete -c ptmem -n __ptmem_no_program -l max-snapshots -x -d 'Snapshots kept at a time'
complete -c ptmem -n __ptmem_no_program -l heap-admin -x -d 'Bytes of the allocator for a block'
complete -c ptmem -n __ptmem_no_program -l alignment -x -d 'Alignment of blocks'
complete -c ptmem -n __ptmem_no_program -l realloc-zero-bytes-frees -x -a 'yes no' -d 'Whether a block of realloc(p, 0) has 0 bytes'
complete -c ptmem -n __ptmem_no_program -l alloc-fn -x -d 'This function allocates for its caller'
complete -c ptmem -n __ptmem_no_program -l ignore-fn -x -d 'Do not count what this function allocates'
complete -c ptmem -n __ptmem_no_program -l demangle -x -a 'yes no' -d 'Names as in the source'
complete -c ptmem -n __ptmem_no_program -l show-below-main -x -a 'yes no' -d 'Call paths from before main'
complete -c ptmem -n __ptmem_no_program -l fullpath-after -x -d 'Paths of source files, what stands behind this text'
complete -c ptmem -n __ptmem_no_program -l read-inline-info -x -a 'yes no' -d 'Inlined functions in call paths'
complete -c ptmem -n __ptmem_no_program -l extra-debuginfo-path -r -a '(__fish_complete_directories)' -d 'Where separate debug files are, too'
complete -c ptmem -n __ptmem_no_program -s o -l massif-out-file -r -F -d 'Where the profile goes'
complete -c ptmem -n __ptmem_no_program -l xtree-memory -x -a 'none allocs full' -d 'Write the memory by call path for kcachegrind'
complete -c ptmem -n __ptmem_no_program -l xtree-memory-file -r -F -d 'Where that goes'
complete -c ptmem -n __ptmem_no_program -l xtree-compress-strings -x -a 'yes no' -d 'Names in that file once only'
complete -c ptmem -n __ptmem_no_program -l events -r -F -d 'Write every event as text'
complete -c ptmem -n __ptmem_no_program -l replay -r -F -d 'Profile the events of a file'
complete -c ptmem -n __ptmem_no_program -l memusage -d 'Print calls, bytes and sizes as memusage does'
complete -c ptmem -n __ptmem_no_program -l memusage-out -r -F -d 'Where that goes'
complete -c ptmem -n __ptmem_no_program -l data -r -F -d 'Write live bytes and stack depth of every call'
complete -c ptmem -n __ptmem_no_program -l data-buffer -x -d 'Records collected before they are written'
complete -c ptmem -n __ptmem_no_program -s m -l mmap -d 'Count mmap, mremap and munmap, too'
complete -c ptmem -n __ptmem_no_program -l no-timer -d 'Do not look at stacks between calls'
complete -c ptmem -n __ptmem_no_program -l progname -x -d 'Count only in programs of this name'
complete -c ptmem -n __ptmem_no_program -l sample -d 'Read /proc every so many milliseconds'
complete -c ptmem -n __ptmem_no_program -l sample-fields -x -d 'Lines of /proc/PID/status'
complete -c ptmem -n __ptmem_no_program -l sample-out -r -F -d 'Where samples go'
complete -c ptmem -n __ptmem_no_program -l leaks -d 'List the blocks that are still there'
complete -c ptmem -n __ptmem_no_program -l leak-check -d 'And whether anything points to them'
complete -c ptmem -n __ptmem_no_program -l leaks-out -r -F -d 'Where these lists go'
complete -c ptmem -n __ptmem_no_program -l error-exitcode -x -d 'Status when bytes are definitely lost'
complete -c ptmem -n __ptmem_no_program -l folded -r -F -d 'Write folded stacks'
complete -c ptmem -n __ptmem_no_program -l flame -r -F -d 'Draw a flame graph'
complete -c ptmem -n __ptmem_no_program -l view -x -a 'live peak exit total count' -d 'What folded stacks and flame graphs show'
complete -c ptmem -n __ptmem_no_program -l top -d 'Show call sites while the program runs'
complete -c ptmem -n __ptmem_no_program -l log-file -r -F -d 'Where messages go'
complete -c ptmem -n __ptmem_no_program -l log-fd -x -d 'The descriptor that messages go to'
complete -c ptmem -n __ptmem_no_program -l child-silent-after-fork -x -a 'yes no' -d 'No messages about forked children'
complete -c ptmem -n __ptmem_no_program -l trace-malloc -x -a 'yes no' -d 'A message for each call'
complete -c ptmem -n __ptmem_no_program -l stats -d 'Print what ptmem itself did'
complete -c ptmem -n __ptmem_no_program -s v -l verbose -d 'Say more'
complete -c ptmem -n __ptmem_no_program -s q -l quiet -d 'Only warnings and errors'
complete -c ptmem -n __ptmem_no_program -l color -x -a 'auto always never' -d 'Colour in messages'
complete -c ptmem -n __ptmem_no_program -l no-rc -d 'Read neither ptmemrc nor PTMEM_OPTS'
complete -c ptmem -n __ptmem_no_program -l command-line-only -x -a 'yes no' -d 'The same as --no-rc in other words'
complete -c ptmem -n __ptmem_no_program -s h -l help -d 'Print the options'
complete -c ptmem -n __ptmem_no_program -s V -l version -d 'Print the version'
