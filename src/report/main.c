/*
 * ptmem-report: shows a massif.out file as text like ms_print, or draws it, and ptmem's other
 * files, as pictures. report_options.c reads the command line, show.c does what it says. Exit
 * status: 0; 255 for a bad option, no file, or a file that is not a massif file; 2 if the file
 * cannot be read (like ms_print); 1 if the report cannot be written.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "report/show.h"

static char *join_arguments(char **argv)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	for (; *argv; argv++)
		fprintf(f, " %s", *argv);
	CHECK(!fclose(f));
	return_ptr(text);
}

int main(int argc, char **argv)
{
	_cleanup_free_ char *arguments = join_arguments(argv + (argc > 0));
	struct report_request request = {
		.text = {.threshold = 1.0, .arguments = arguments},
		.snapshot = MASSIF_SNAPSHOT_DEFAULT,
		.format = FORMAT_DEFAULT,
		.argv = argv,
	};

	standard_files_hold();
	signal(SIGXFSZ, SIG_IGN); /* beyond RLIMIT_FSIZE a write fails, and that is reported */
	log_set_name("ptmem-report");
	if (!report_options_parse(&request, argv + (argc > 0)))
		return EXIT_REFUSED;
	int status = 0;

	if (request.wants_help)
		report_options_print_help();
	else if (request.wants_version)
		puts("ptmem-report " PTMEM_VERSION);
	else
		status = show(&request);
	my_code_deinit(&request.my_code);
	if (fflush(stdout) || ferror(stdout)) {
		log_error("cannot write the report: %s", strerror(errno));
		return EXIT_NOT_WRITTEN;
	}
	return status;
}
