#include "report/chart/picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/outfile.h"
#include "report/chart/axis.h"
#include "report/chart/canvas.h"
#include "report/chart/chart.h"
#include "report/chart/input_picture.h"

#define SLACK 0.1         /* maximum difference, as a share of the longer one */
#define LEAST_SLACK 1000  /* ms */

static bool has_process(const struct samples_file *samples, uint64_t pid)
{
	for (size_t i = 0; i < samples->row_count; i++) {
		if (samples->pid[i] == pid)
			return true;
	}
	return false;
}

uint32_t rss_process(const struct samples_file *samples, const char *path)
{
	const char *at = text_base_name(path);

	while (*(at += strcspn(at, "0123456789"))) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);

		if (has_process(samples, number))
			return (uint32_t)number;
		at = end;
	}
	return samples->pid[0];
}

/* When the last sample of @pid was taken and the mean time between two, in milliseconds. */
static double last_time(const struct samples_file *samples, uint32_t pid, double *interval_out)
{
	double last = 0;
	size_t count = 0;

	for (size_t i = 0; i < samples->row_count; i++) {
		if (samples->pid[i] != pid)
			continue;
		last = samples->time[i] * 1000;
		count++;
	}
	*interval_out = count ? last / (double)count : 0;
	return last;
}

char *rss_doubt(const struct samples_file *samples, uint32_t pid,
		const struct massif_file *profile, const char *path)
{
	/* the pid in a name like "massif.out.1234" */
	const char *out = strstr(text_base_name(path), ".out.");
	unsigned long named = out ? strtoul(out + strlen(".out."), NULL, 10) : 0;
	char a[AXIS_TEXT_SIZE], b[AXIS_TEXT_SIZE];
	double interval, last = last_time(samples, pid, &interval), end = 0;

	if (named && named != pid)
		return xasprintf("the samples are of process %u, the profile of process %lu", pid,
				 named);
	for (size_t i = 0; i < profile->snapshot_count; i++)
		end = MAX(end, (double)profile->snapshot[i].time);
	if (fabs(last - end) <= MAX(MAX(LEAST_SLACK, 2 * interval), SLACK * MAX(last, end)))
		return NULL;
	axis_text(AXIS_MILLISECONDS, last, a);
	axis_text(AXIS_MILLISECONDS, end, b);
	return xasprintf("the samples of process %u end at %s, the profile at %s: "
			 "they may be of different runs", pid, a, b);
}

/*
 * From an input file to a picture file: the chart for its kind, drawn on a canvas that writes
 * through an outfile, so that a picture is complete or absent.
 */

static cairo_status_t write_bytes(void *ctx, const unsigned char *data, unsigned size)
{
	return fwrite(data, 1, size, ctx) == size ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* cairo's error codes that drawing and writing can return. */
static int errno_of(cairo_status_t status)
{
	switch (status) {
	case CAIRO_STATUS_SUCCESS:
		return 0;
	case CAIRO_STATUS_NO_MEMORY:
		return -ENOMEM;
	case CAIRO_STATUS_WRITE_ERROR:
		return errno ? -errno : -EIO;
	default:
		return -EIO;
	}
}

/* Minimum size of the layout: a smaller chart is drawn at this size and scaled down. */
#define LEAST_WIDTH 100
#define LEAST_HEIGHT 80

/* What is drawn: one of the two. */
struct subject {
	struct chart chart;
	const struct inspect_file *inspect; /* NULL = the chart */
};

/* Takes over @canvas. */
static void draw_subject(const struct subject *s, struct canvas *canvas,
			 const struct picture_options *o)
{
	double width = o->width, height = o->height;
	double scale = MAX(1.0, MAX(LEAST_WIDTH / width, LEAST_HEIGHT / height));

	canvas_scale(canvas, 1 / scale);
	if (s->inspect)
		inspect_picture_draw(s->inspect, o->title, canvas, width * scale, height * scale);
	else
		chart_draw(&s->chart, canvas, width * scale, height * scale);
	canvas_free(canvas);
}

static cairo_status_t draw_png(FILE *file, const struct subject *s,
			       const struct picture_options *o)
{
	cairo_surface_t *surface =
		cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)o->width, (int)o->height);
	cairo_t *cr = cairo_create(surface);

	draw_subject(s, canvas_new_cairo(cr), o);
	cairo_status_t status = cairo_status(cr);

	cairo_destroy(cr);
	if (!status)
		status = cairo_surface_write_to_png_stream(surface, write_bytes, file);
	cairo_surface_destroy(surface);
	return status;
}

static cairo_status_t draw_svg(FILE *file, const struct subject *s,
			       const struct picture_options *o)
{
	draw_subject(s, canvas_new_svg(file, o->width, o->height), o);
	return ferror(file) ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

struct drawing {
	const struct subject *subject;
	const struct picture_options *options;
	cairo_status_t (*draw_as)(FILE *, const struct subject *, const struct picture_options *);
};

static int put_drawing(FILE *file, const void *ctx)
{
	const struct drawing *d = ctx;

	errno = 0;
	return errno_of(d->draw_as(file, d->subject, d->options));
}

static int make_subject(const struct input *input, const struct picture_options *o,
			struct subject *s, char **why_out)
{
	struct chart *c = &s->chart;

	switch (input->kind) {
	case INPUT_MASSIF:
		return massif_chart(input->massif, o, c, why_out);
	case INPUT_MEMUSAGE:
		memusage_chart(input->memusage, o, c);
		return 0;
	case INPUT_SAMPLES:
		return samples_chart(input->samples, o, c, why_out);
	case INPUT_INSPECT:
		s->inspect = input->inspect;
		return 0;
	case INPUT_RECORDING:
		return recording_chart(input->recording, o, c, why_out);
	case INPUT_GRAPH:
		break;
	}
	return -EINVAL;
}

int picture_write(const struct input *input, const struct picture_options *o, char **why_out)
{
	_cleanup_free_ char *title = o->title ? text_clean(o->title, strlen(o->title)) : NULL;
	struct picture_options clean = *o;
	struct subject subject = {0};

	clean.title = title;
	int err = make_subject(input, &clean, &subject, why_out);

	if (!err && o->png)
		err = outfile_put(o->png, put_drawing,
				  &(struct drawing){&subject, &clean, draw_png});
	if (!err && o->svg)
		err = outfile_put(o->svg, put_drawing,
				  &(struct drawing){&subject, &clean, draw_svg});
	chart_deinit(&subject.chart);
	return err;
}
