# fish completion for ptmem-report; the options are from its table.

@fish ptmem-report@
