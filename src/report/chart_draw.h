/* Draws a chart. */
#ifndef PTMEM_REPORT_CHART_DRAW_H
#define PTMEM_REPORT_CHART_DRAW_H

#include "report/canvas.h"
#include "report/chart.h"

/* Draws on a white background of @width times @height. Parts that do not fit are left out. */
void chart_draw(const struct chart *c, struct canvas *canvas, double width, double height);

#endif
