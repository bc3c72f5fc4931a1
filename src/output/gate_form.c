/* Which forms of gates there are (gate.h), and by which names of files they are chosen. */
#include "base/text.h"
#include "output/gate.h"

enum gate_form gate_form_of(const char *path)
{
	static const struct {
		const char *end;
		enum gate_form form;
	} ends[] = {
		{".md", GATE_MARKDOWN}, {".xml", GATE_JUNIT}, {".sarif", GATE_SARIF},
		{".sarif.json", GATE_SARIF}, {".json", GATE_JSON},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (text_ends_in(path, ends[i].end))
			return ends[i].form;
	return GATE_NONE;
}

void gate_write(FILE *out, enum gate_form form, const struct gate *g)
{
	static void (*const writers[])(FILE *out, const struct gate *g) = {
		[GATE_MARKDOWN] = gate_write_markdown, [GATE_GITHUB] = gate_write_github,
		[GATE_JUNIT] = gate_write_junit, [GATE_SARIF] = gate_write_sarif,
		[GATE_JSON] = gate_write_json,
	};

	if (form != GATE_NONE)
		writers[form](out, g);
}
