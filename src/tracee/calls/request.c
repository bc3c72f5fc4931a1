/* The table of requests: code, kind, and the meaning of each argument. */
#include "tracee/calls/request.h"
#include "tracee/calls/pools.h"

/* Arguments are numbered from 1; 0: not present. */
static const struct row {
	uint32_t code;
	uint8_t kind, addr, size, old_addr, pool, flags, text;
} rows[] = {
	{.code = 0x1001, .kind = REQUEST_IS_RUNNING},
	{.code = 0x1202, .kind = REQUEST_MONITOR, .text = 1},
	{.code = 0x1301, .kind = REQUEST_ALLOC, .addr = 1, .size = 2},
	{.code = 0x1302, .kind = REQUEST_FREE, .addr = 1},
	{.code = 0x130b, .kind = REQUEST_RESIZE, .addr = 1, .size = 3},
	{.code = 0x1303, .kind = REQUEST_POOL_CREATE, .pool = 1, .flags = 4},
	{.code = 0x1304, .kind = REQUEST_POOL_DESTROY, .pool = 1},
	{.code = 0x1305, .kind = REQUEST_POOL_ALLOC, .pool = 1, .addr = 2, .size = 3},
	{.code = 0x1306, .kind = REQUEST_POOL_FREE, .pool = 1, .addr = 2},
	{.code = 0x1307, .kind = REQUEST_POOL_TRIM, .pool = 1, .addr = 2, .size = 3},
	{.code = 0x1308, .kind = REQUEST_POOL_MOVE, .pool = 1, .addr = 2},
	{.code = 0x1309,
	 .kind = REQUEST_POOL_CHANGE,
	 .pool = 1,
	 .old_addr = 2,
	 .addr = 3,
	 .size = 4},
	{.code = 0x130a, .kind = REQUEST_POOL_EXISTS, .pool = 1},
};

static uint64_t argument(const uint64_t *word, uint8_t i)
{
	return i ? word[i] : 0;
}

struct request request_decode(const uint64_t word[REQUEST_WORDS])
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		if (r->code != word[0])
			continue;
		return (struct request){
			.kind = r->kind,
			.addr = argument(word, r->addr),
			.size = argument(word, r->size),
			.old_addr = argument(word, r->old_addr),
			.pool = argument(word, r->pool),
			.flags = argument(word, r->flags),
			.text = argument(word, r->text),
		};
	}
	return (struct request){.kind = REQUEST_NONE};
}
