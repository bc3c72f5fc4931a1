/*
 * Perf maps and jitdump files, read in two parts: nothing is read beyond an end, and addresses have
 * names whatever the file says.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "languages/perf_map.h"

#define HEADER "DTiJ\1\0\0\0\50\0\0\0\76\0\0\0\0\0\0\0\322\4\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define U64(low) low "\0\0\0\0\0\0"
#define LINES                                                                        \
	"\2\0\0\0\72\0\0\0" U64("\0\0") U64("\0\20") U64("\1\0") U64("\4\20") "\7\0\0\0\0\0\0\0" \
	"a.\0"
#define LOAD "\0\0\0\0\112\0\0\0" U64("\5\0") "\1\0\0\0\1\0\0\0" U64("\0\20") U64("\0\20") U64("\20\0") U64("\1\0") "f\0"
#define MOVE "\1\0\0\0\100\0\0\0" U64("\5\0") "\1\0\0\0\1\0\0\0" U64("\0\40") U64("\0\20") U64("\0\40") U64("\20\0") U64("\1\0")

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT("1000 20 f\n0x2000 0x10 LazyCompile:*g /a b.js:7\n3000 8 py::h:/x.py\n1008 10 i\n"),
	FUZZ_TEXT(HEADER LINES LOAD "0123456789012345" MOVE LOAD "0123456789012345"),
	{0},
};

static void parse_all(struct perf_file *f, struct code_map *m, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		uint8_t *copy = malloc(size - at); /* exactly as large: a sanitizer sees reads beyond it */

		memcpy(copy, data + at, size - at);
		struct perf_data d = {copy, size - at, size - at, 100};
		uint64_t used = perf_file_parse(f, m, &d);

		free(copy);
		CHECK(used <= size - at);
		if (!used || f->is_broken)
			break;
		at += used;
	}
}

void fuzz_one(const uint8_t *data, size_t size)
{
	for (enum perf_file_kind kind = PERF_MAP; kind <= PERF_JITDUMP; kind++) {
		struct perf_file f;
		struct code_map m = {0};

		perf_file_init(&f, kind, "");
		parse_all(&f, &m, data, size / 2);
		f.is_again = true;
		parse_all(&f, &m, data, size);
		for (taddr_t addr = 0xff0; addr < 0x3010; addr += 8) {
			const struct code_entry *e = code_map_find(&m, addr, addr % 3 ? 100 : 3);
			char *file, *name = e ? code_map_name(&m, e) : NULL;
			uint32_t line;

			CHECK(!e || (addr >= e->start && addr < e->end));
			if (e && code_map_line(&m, e, addr, &file, &line))
				free(file);
			free(name);
		}
		perf_file_deinit(&f);
		code_map_deinit(&m);
	}
}
