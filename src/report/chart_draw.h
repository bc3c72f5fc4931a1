/* Draws a chart. */
#ifndef PTMEM_REPORT_CHART_DRAW_H
#define PTMEM_REPORT_CHART_DRAW_H

#include "report/canvas.h"
#include "report/chart.h"

/*
 * Draws on a white ground of @width times @height. What does not fit is left out, not drawn over.
 */
void chart_draw(const struct chart *c, struct canvas *canvas, double width, double height);

#endif
