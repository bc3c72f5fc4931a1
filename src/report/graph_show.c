/* Heap graphs: printed as ptmem --graph does, or compared. */
#include "report/show.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "output/graph/graph_report.h"
#include "recording/graph_file.h"
#include "recording/graph_pprof.h"

/* -- requests -- */

static int refuse(const struct report_request *r, size_t i, const char *why)
{
	log_error("%s: %s", r->path[i], why);
	return EXIT_REFUSED;
}

static const char *find_problem(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);
	bool is_pprof = format && strcmp(format->name, "pprof") == 0;

	if (r->who_holds && r->is_diff)
		return "--who-holds is about one heap graph";
	if (r->who_holds && is_pprof)
		return "--format=pprof has all of a heap graph: --who-holds goes with the text "
		       "and --format=json";
	if (r->is_diff && is_pprof)
		return "make one pprof file of each heap graph, and let pprof compare them by "
		       "-base";
	if (r->html && r->is_diff)
		return "--diff of heap graphs makes a text or --format=json, no page";
	if (r->who_holds && r->html && !request_printed(r))
		return "--who-holds is about what is printed, not about the page of --html";
	return NULL;
}

int graph_show(const struct report_request *r, const struct input *input)
{
	const struct report_format *format = report_format_of(r);
	bool is_json = format && format->kinds != AS_TEXT;
	_cleanup_free_ char *refusal = r->is_brief ? NULL : request_check_graph(r);
	const char *why = refusal ?: find_problem(r);

	if (why)
		return refuse(r, 0, why);
	if (r->is_diff && input[1].kind != INPUT_GRAPH)
		return refuse(r, 1, "not a heap graph, as the other file is");
	if (r->is_diff) {
		graph_diff_show(r, input, is_json);
		return 0;
	}
	const struct graph_file *f = input->graph;
	const struct graph_title title = graph_file_title(f);
	const struct graph_wish wish = {.depth = r->graph_depth, .holds = r->who_holds};

	if (is_json && strcmp(format->name, "pprof") == 0)
		graph_pprof_write(stdout, &f->graph, title.command);
	else if (is_json)
		graph_report_write_json(stdout, &title, &f->graph, &wish);
	else if (request_printed(r))
		graph_report_print(stdout, &title, &f->graph, &wish);
	return r->html ? html_report_write(r, input) : 0;
}
