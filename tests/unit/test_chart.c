/*
 * Charts, drawn on a surface in memory and compared pixel by pixel: curves and
 * areas are at the expected coordinates, texts exist, nothing overlaps the margins.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "report/chart/chart.h"

struct image {
	cairo_surface_t *surface;
	int width, height;
};

struct extent {
	int left, top, right, bottom, count; /* right, bottom: last pixel */
};

static struct image draw(const struct chart *c, int width, int height)
{
	struct image image = {cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height), width, height};
	cairo_t *cr = cairo_create(image.surface);

	struct canvas *canvas = canvas_new_cairo(cr);

	chart_draw(c, canvas, width, height);
	canvas_free(canvas);
	assert_int_equal(cairo_status(cr), CAIRO_STATUS_SUCCESS);
	cairo_destroy(cr);
	cairo_surface_flush(image.surface);
	return image;
}

static uint32_t pixel(const struct image *i, int x, int y)
{
	const unsigned char *data = cairo_image_surface_get_data(i->surface);
	uint32_t value;

	memcpy(&value, data + (ptrdiff_t)y * cairo_image_surface_get_stride(i->surface) + x * 4, 4);
	return value & 0xffffff;
}

static uint32_t rgb(struct canvas_color c)
{
	return (uint32_t)lround(c.red * 255) << 16 | (uint32_t)lround(c.green * 255) << 8 | (uint32_t)lround(c.blue * 255);
}

/* Whether two colours differ by @most or less in each part. */
static bool is_near(uint32_t a, uint32_t b, int most)
{
	for (int shift = 0; shift < 24; shift += 8)
		if (abs((int)(a >> shift & 0xff) - (int)(b >> shift & 0xff)) > most)
			return false;
	return true;
}

/*
 * Extent of @color above row @end. cairo's rounding differs by 1; thin lines blend with the ground
 * (90).
 */
static struct extent find(const struct image *i, uint32_t color, int most, int end)
{
	struct extent e = {i->width, i->height, -1, -1, 0};

	for (int y = 0; y < end; y++)
		for (int x = 0; x < i->width; x++) {
			if (!is_near(pixel(i, x, y), color, most))
				continue;
			e.left = MIN(e.left, x);
			e.right = MAX(e.right, x);
			e.top = MIN(e.top, y);
			e.bottom = MAX(e.bottom, y);
			e.count++;
		}
	return e;
}

/* The row below the plot: where the lowest area ends. The legend, further down, has the same colours. */
static int foot_of(const struct image *i)
{
	int y = i->height / 2;

	while (y < i->height && is_near(pixel(i, i->width / 2, y), rgb(CHART_BLUE), 1))
		y++;
	return y;
}

/* Two areas, 0 .. 60 and 60 .. 100, over the whole width, and a curve at 30. */
static struct chart make_chart(void)
{
	struct chart c = {
		.title = xstrdup("a title"),
		.x = {AXIS_CALLS, 10},
		.y = {AXIS_BYTES, 100},
		.x_title = xstrdup("calls"),
		.y_title = xstrdup("memory"),
		.note = xstrdup("a note"),
		.has_peak = true,
		.peak_x = 10,
		.peak_y = 100,
		.peak_label = xstrdup("peak 100 B"),
	};
	struct chart_series *s = chart_add(&c, xstrdup("below"), CHART_AREA, CHART_BLUE);

	chart_add_point(s, 0, 0, 60);
	chart_add_point(s, 10, 0, 60);
	s = chart_add(&c, xstrdup("above"), CHART_AREA, CHART_VERMILLION);
	chart_add_point(s, 0, 60, 100);
	chart_add_point(s, 10, 60, 100);
	s = chart_add(&c, xstrdup("curve"), CHART_LINE, (struct canvas_color){1, 1, 0});
	chart_add_point(s, 0, 0, 30);
	chart_add_point(s, 5, 0, NAN);
	chart_add_point(s, 6, 0, 30);
	chart_add_point(s, 10, 0, 30);
	return c;
}

static void check_areas(int width, int height)
{
	struct chart c = make_chart();
	struct image i = draw(&c, width, height);
	int end = foot_of(&i);
	struct extent below = find(&i, rgb(CHART_BLUE), 1, end), above = find(&i, rgb(CHART_VERMILLION), 1, end);
	double unit = (below.bottom - above.top + 1) / 100.0;

	assert_true(below.count > 0 && above.count > 0);
	assert_in_range(below.bottom - below.top + 1, (int)(60 * unit) - 2, (int)(60 * unit) + 2);
	assert_in_range(above.bottom - above.top + 1, (int)(40 * unit) - 2, (int)(40 * unit) + 2);
	assert_in_range(below.left, above.left - 1, above.left + 1);
	assert_true(above.top > height / 12);
	assert_true(below.left > 20 && below.right < width - 5);
	struct extent curve = find(&i, 0xffff00, 90, end);

	assert_in_range((curve.top + curve.bottom) / 2, (int)(below.bottom - 30 * unit) - 2, (int)(below.bottom - 30 * unit) + 2);
	assert_true(curve.right >= below.right - 2);
	/* The gap: nothing from 0 to 6 but the first point. */
	assert_true(curve.left >= below.left + (below.right - below.left) * 55 / 100);
	cairo_surface_destroy(i.surface);
	chart_deinit(&c);
}

static void test_areas(void **state)
{
	check_areas(800, 600);
	check_areas(1600, 900);
	check_areas(400, 300);
}

static size_t count_dark(const struct image *i, int left, int top, int right, int bottom)
{
	size_t n = 0;

	for (int y = top; y < bottom; y++)
		for (int x = left; x < right; x++)
			n += (pixel(i, x, y) & 0xff) < 0x90 && (pixel(i, x, y) >> 16) < 0x90;
	return n;
}

/* The outermost pixels are white, whatever the texts. */
static void check_border(const struct image *i)
{
	for (int x = 0; x < i->width; x++)
		assert_true(pixel(i, x, 0) == 0xffffff && pixel(i, x, i->height - 1) == 0xffffff);
	for (int y = 0; y < i->height; y++)
		assert_true(pixel(i, 0, y) == 0xffffff && pixel(i, i->width - 1, y) == 0xffffff);
}

static void test_texts(void **state)
{
	struct chart c = make_chart();
	struct image i = draw(&c, 800, 600);

	assert_true(count_dark(&i, 300, 5, 500, 28) > 50);   /* title */
	assert_true(count_dark(&i, 5, 30, 100, 52) > 20);    /* y title */
	assert_true(count_dark(&i, 650, 50, 780, 75) > 50);  /* peak */
	assert_true(count_dark(&i, 5, 580, 100, 599) > 20);  /* note */
	assert_true(count_dark(&i, 26, 545, 100, 575) > 20); /* legend */
	check_border(&i);
	cairo_surface_destroy(i.surface);
	chart_deinit(&c);
}

static void test_long_texts(void **state)
{
	static const int size[][2] = {{800, 600}, {1600, 900}, {400, 300}, {100, 80}, {300, 1000}};
	struct chart c = make_chart();
	char *text = xmalloc(2001);

	for (int i = 0; i < 2000; i++)
		text[i] = i % 7 == 3 ? '<' : i % 11 == 4 ? '(' : i % 5 == 4 ? ' ' : 'W';
	text[2000] = '\0';
	free(c.title);
	c.title = xstrdup(text);
	free(c.note);
	c.note = xstrdup(text);
	for (size_t s = 0; s < c.series_count; s++) {
		free(c.series[s].label);
		c.series[s].label = xstrdup(text);
		c.series[s].detail = xstrdup("(in a.so)");
		c.series[s].value = xstrdup("100 MiB 100 %");
	}
	free(text);
	for (size_t s = 0; s < ARRAY_SIZE(size); s++) {
		struct image i = draw(&c, size[s][0], size[s][1]);

		check_border(&i);
		cairo_surface_destroy(i.surface);
	}
	chart_deinit(&c);
}

/* Values beyond the axes stay inside the plot. */
static void test_outside(void **state)
{
	struct chart c = make_chart();
	struct chart_series *s = chart_add(&c, xstrdup("wild"), CHART_LINE, (struct canvas_color){1, 0, 1});

	chart_add_point(s, -5, 0, 1e300);
	chart_add_point(s, 50, 0, -1e300);
	struct image i = draw(&c, 800, 600);
	int end = foot_of(&i);
	struct extent plot = find(&i, rgb(CHART_BLUE), 1, end), wild = find(&i, 0xff00ff, 1, end + 10);

	assert_true(wild.count > 0);
	assert_true(wild.left >= plot.left - 2 && wild.right <= plot.right + 2 && wild.bottom <= plot.bottom + 2);
	cairo_surface_destroy(i.surface);
	chart_deinit(&c);
}

/* A million points in 700 columns: the two outliers remain visible, one up and one down. */
static void test_many_points(void **state)
{
	struct chart c = {.title = xstrdup(""), .x = {AXIS_CALLS, 1e6}, .y = {AXIS_BYTES, 100}};
	struct chart_series *s = chart_add(&c, xstrdup("many"), CHART_STEPS, CHART_GREEN);

	for (int i = 0; i < 1000000; i++)
		chart_add_point(s, i, 0, i == 777777 ? 100 : i == 777000 ? 0 : 50);
	struct image i = draw(&c, 800, 600);
	int rows = 0;

	/* The line is less than a pixel wide in places, so its colour is mixed with the ground's. */
	for (int y = 0; y < 470; y++)
		for (int x = 500; x < 700; x++) {
			uint32_t p = pixel(&i, x, y);

			if ((int)(p >> 8 & 0xff) - (int)(p >> 16) > 40) {
				rows++;
				break;
			}
		}
	assert_in_range(rows, 380, 450);
	cairo_surface_destroy(i.surface);
	chart_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_areas),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_many_points),
	};

	return cmocka_run_group_tests_name("chart", tests, NULL, NULL);
}
