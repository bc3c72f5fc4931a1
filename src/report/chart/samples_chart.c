/*
 * Samples of /proc as a chart: resident memory and address space on one scale. An address space so
 * large that resident memory would be flat is not drawn, but stays in the legend. With several
 * processes, the resident memory of each.
 */
#include "report/chart/input_picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

#define RSS_COLOR CHART_BLACK

/* Maximum ratio of a drawn address space to the resident memory. */
#define LARGEST_RATIO 25
#define OTHERS_COLOR ((struct canvas_color){0.60, 0.60, 0.60})

static const struct {
	const char *field, *label;
	struct canvas_color color;
	enum chart_style style;
	bool is_resident;
} curves[] = {
	{"VmRSS", "resident (VmRSS)", {0.00, 0.45, 0.70}, CHART_LINE, true},
	{"VmHWM", "most resident so far (VmHWM)", {0.34, 0.71, 0.91}, CHART_DASHES, true},
	{"VmSwap", "swapped out (VmSwap)", {0.80, 0.47, 0.65}, CHART_LINE, true},
	{"VmSize", "address space (VmSize)", {0.84, 0.37, 0.00}, CHART_LINE, false},
	{"VmPeak", "largest address space so far (VmPeak)", {0.90, 0.62, 0.00}, CHART_DASHES,
	 false},
};

/* Adds @field of process @pid to @s; returns its maximum. */
static double add_points(const struct samples_file *f, uint32_t pid, size_t field,
			 struct chart_series *s)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < f->row_count; i++) {
		if (f->pid[i] != pid)
			continue;
		uint64_t bytes = samples_file_bytes(f, i, field);

		chart_add_point(s, f->time[i] * 1000, 0,
				bytes == SAMPLES_NONE ? NAN : (double)bytes);
		if (bytes != SAMPLES_NONE)
			largest = MAX(largest, bytes);
	}
	return (double)largest;
}

static void set_value(struct chart_series *s, double largest)
{
	char text[AXIS_TEXT_SIZE];

	axis_text(AXIS_BYTES, largest, text);
	s->value = xasprintf("most %s", text);
}

double samples_chart_add_rss(const struct samples_file *f, uint32_t pid, struct chart *c)
{
	size_t field = samples_file_field(f, "VmRSS");

	if (field == SIZE_MAX || !f->row_count)
		return 0;
	struct chart_series *s =
		chart_add(c, xstrdup("resident memory (VmRSS)"), CHART_LINE, RSS_COLOR);
	double largest = add_points(f, pid, field, s);

	set_value(s, largest);
	return largest;
}

static double largest_of(const struct samples_file *f, uint32_t pid, size_t field)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < f->row_count; i++) {
		uint64_t bytes = samples_file_bytes(f, i, field);

		if (f->pid[i] == pid && bytes != SAMPLES_NONE)
			largest = MAX(largest, bytes);
	}
	return (double)largest;
}

static void add_curve(const struct samples_file *f, struct chart *c, uint32_t pid, size_t curve,
		      double resident)
{
	size_t field = samples_file_field(f, curves[curve].field);
	struct chart_series *s = chart_add(c, xstrdup(curves[curve].label), curves[curve].style,
					   curves[curve].color);
	double largest = largest_of(f, pid, field);

	set_value(s, largest);
	if (!curves[curve].is_resident && resident > 0 && largest > LARGEST_RATIO * resident) {
		char *value = s->value;

		s->value = xasprintf("%s, off the scale", value);
		free(value);
		return;
	}
	add_points(f, pid, field, s);
	c->y.max = MAX(c->y.max, largest);
}

static void add_curves(const struct samples_file *f, struct chart *c, uint32_t pid)
{
	double resident = 0;

	for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
		size_t field = samples_file_field(f, curves[i].field);

		if (field == SIZE_MAX)
			continue;
		if (curves[i].is_resident)
			resident = MAX(resident, largest_of(f, pid, field));
		add_curve(f, c, pid, i, resident);
	}
}

struct process {
	uint32_t pid;
	uint64_t largest;      /* resident bytes */
};

static int compare_processes(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->largest != y->largest ? (x->largest < y->largest ? 1 : -1) :
	       x->pid < y->pid		? -1 :
					  x->pid > y->pid;
}

/* All processes, the largest first. */
static struct process *find_processes(const struct samples_file *f, size_t field, size_t *count_out)
{
	VEC(struct process) found = {0};

	for (size_t i = 0; i < f->row_count; i++) {
		size_t k = 0;
		uint64_t bytes = samples_file_bytes(f, i, field);

		while (k < found.count && found.data[k].pid != f->pid[i])
			k++;
		if (k == found.count)
			*vec_add(&found) = (struct process){.pid = f->pid[i]};
		if (bytes != SAMPLES_NONE)
			found.data[k].largest = MAX(found.data[k].largest, bytes);
	}
	qsort(found.data, found.count, sizeof(*found.data), compare_processes);
	*count_out = found.count;
	return found.data;
}

/* The largest processes have a colour each; the others share one. */
static void add_processes(const struct samples_file *f, struct chart *c)
{
	size_t field = samples_file_field(f, "VmRSS"), count;
	struct process *process = find_processes(f, field, &count);
	size_t own = count <= CHART_PALETTE_SIZE ? count : CHART_PALETTE_SIZE - 1;

	c->y.max = (double)process[0].largest;
	for (size_t i = 0; i < own; i++) {
		struct chart_series *s =
			chart_add(c, xasprintf("resident, process %u", process[i].pid), CHART_LINE,
				  chart_palette(i + 4));

		set_value(s, add_points(f, process[i].pid, field, s));
	}
	if (own < count) {
		struct chart_series *s = chart_add(c,
						   xasprintf("%zu smaller processes", count - own),
						   CHART_LINE, OTHERS_COLOR);

		set_value(s, (double)process[own].largest);
		for (size_t i = own; i < count; i++) {
			add_points(f, process[i].pid, field, s);
			chart_add_point(s, s->point[s->count - 1].x, 0, NAN);
		}
	}
	free(process);
}

static void mark_peak(const struct samples_file *f, struct chart *c)
{
	const struct chart_series *s = &c->series[0];
	char text[AXIS_TEXT_SIZE];

	if (samples_file_field(f, "VmRSS") == SIZE_MAX)
		return;
	for (size_t i = 0; i < s->count; i++) {
		if (isnan(s->point[i].high) || (c->has_peak && s->point[i].high <= c->peak_y))
			continue;
		c->has_peak = true;
		c->peak_x = s->point[i].x;
		c->peak_y = s->point[i].high;
	}
	if (!c->has_peak)
		return;
	axis_text(AXIS_BYTES, c->peak_y, text);
	c->peak_label = xasprintf("resident peak %s", text);
}

static bool has_many_processes(const struct samples_file *f)
{
	for (size_t i = 1; i < f->row_count; i++)
		if (f->pid[i] != f->pid[0])
			return true;
	return false;
}

int samples_chart(const struct samples_file *f, const struct picture_options *o, struct chart *c,
		  char **why_out)
{
	bool is_many = has_many_processes(f) && samples_file_field(f, "VmRSS") != SIZE_MAX;

	if (!f->row_count) {
		*why_out = xstrdup("there is no sample in it: nothing to draw");
		return -EINVAL;
	}
	for (size_t i = 0; i < f->row_count; i++)
		c->x.max = MAX(c->x.max, f->time[i] * 1000);
	c->x.max = MAX(c->x.max, 1);
	c->x.kind = AXIS_MILLISECONDS;
	c->y.kind = AXIS_BYTES;
	if (is_many)
		add_processes(f, c);
	else
		add_curves(f, c, f->pid[0]);
	if (!c->series_count) {
		*why_out = xstrdup("none of VmRSS, VmHWM, VmSwap, VmSize and VmPeak is in it: "
				   "nothing to draw");
		return -EINVAL;
	}
	c->y.max = MAX(c->y.max, 1);
	c->title = o->title ? xstrdup(o->title) :
		   is_many  ? xstrdup("memory of processes") :
			      xasprintf("memory of process %u", f->pid[0]);
	c->x_title = xstrdup("time");
	c->y_title = xstrdup(is_many ? "resident memory" : "memory");
	if (!is_many)
		mark_peak(f, c);
	return 0;
}
