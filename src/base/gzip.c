/* deflate counts in unsigned int, so large data is compressed in pieces. See gzip.h. */
#include "base/gzip.h"

#include <zlib.h>

#include "base/alloc.h"
#include "base/log.h"

#define WINDOW (15 + 16) /* for deflateInit2: the largest window, and a gzip header */
#define PIECE ((size_t)1 << 30)

size_t gzip_pack(const void *data, size_t size, char **out)
{
	z_stream z = {0};

	CHECK(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW, 8,
			   Z_DEFAULT_STRATEGY) == Z_OK);
	size_t room = deflateBound(&z, size), done = 0, used = 0;

	*out = xmalloc(room);
	do {
		size_t part = MIN(size - used, PIECE), space = MIN(room - done, PIECE);
		bool is_last = used + part == size;

		z.next_in = (Bytef *)(uintptr_t)data + used;
		z.avail_in = (uInt)part;
		z.next_out = (Bytef *)*out + done;
		z.avail_out = (uInt)space;
		CHECK(deflate(&z, is_last ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
		used += part - z.avail_in;
		done += space - z.avail_out;
		if (is_last && z.avail_out)
			break;
	} while (done < room);
	deflateEnd(&z);
	return done;
}

size_t gzip_peek(const void *data, size_t size, void *out, size_t room)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)MIN(size, PIECE),
		      .next_out = out, .avail_out = (uInt)room};

	if (inflateInit2(&z, WINDOW) != Z_OK)
		return 0;
	inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
	return room - z.avail_out;
}
