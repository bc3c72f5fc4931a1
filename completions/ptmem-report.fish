# fish completion for ptmem-report; scripts/docs holds it against --help.

complete -c ptmem-report -l threshold -x -d 'Leave out call sites below this percentage'
complete -c ptmem-report -l x -x -d 'Width of the graph'
complete -c ptmem-report -l y -x -d 'Height of the graph'
complete -c ptmem-report -s h -l help -d 'Print the options'
complete -c ptmem-report -l version -d 'Print the version'
