/* Reads input files, and determines their kind. */
#include "report/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "recording/recording_read.h"

static int read_stream(FILE *stream, char **data_out, size_t *size_out)
{
	VEC(char) data = {0};
	size_t n;

	do {
		vec_reserve(&data, data.count + 65536);
		n = fread(data.data + data.count, 1, data.capacity - data.count, stream);
		data.count += n;
	} while (n);
	if (ferror(stream)) {
		int err = errno ? -errno : -EIO;

		vec_deinit(&data);
		return err;
	}
	*data_out = data.data;
	*size_out = data.count;
	return 0;
}

int input_read(const char *path, char **data_out, size_t *size_out)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *stream = is_stdin ? stdin : fopen(path, "re");

	if (!stream)
		return -errno;
	int err = read_stream(stream, data_out, size_out);

	if (!is_stdin)
		fclose(stream);
	return err;
}

enum input_kind input_kind(const char *data, size_t size)
{
	static const char zero[8];

	if (recording_is(data, size))
		return INPUT_RECORDING;
	if (inspect_file_is(data, size))
		return INPUT_INSPECT;
	if (size >= 5 && !memcmp(data, "time\t", 5))
		return INPUT_SAMPLES;
	if (size >= sizeof(zero) && !memcmp(data, zero, sizeof(zero)))
		return INPUT_MEMUSAGE;
	return INPUT_MASSIF;
}

/* For a file whose start is not that of a massif file a line number would not help. */
static int open_massif(char *data, size_t size, struct massif_file **out, char **why_out)
{
	bool has_head = *data == '#' || *data == '\n' ||
			(size >= 5 && !memcmp(data, "desc:", 5)) ||
			(size >= 4 && !memcmp(data, "cmd:", 4));
	int err = massif_file_parse(data, size, out, why_out);

	if (err == -EINVAL && !has_head) {
		free(*why_out);
		*why_out = xstrdup("not a massif profile");
	}
	return err;
}

static int open_recording(char *data, size_t size, struct recording **out, char **why_out)
{
	int err = recording_read(data, size, out, why_out);

	free(data);
	return err;
}

int input_open(const char *path, struct input *out, char **why_out)
{
	char *data;
	size_t size;
	int err = input_read(path, &data, &size);

	if (err)
		return err;
	struct input input = {.kind = input_kind(data, size)};

	if (!size) {
		free(data);
		*why_out = xstrdup("the file is empty");
		return -EINVAL;
	}
	if (input.kind == INPUT_SAMPLES)
		err = samples_file_parse(data, size, &input.samples, why_out);
	else if (input.kind == INPUT_MEMUSAGE)
		err = memusage_file_parse(data, size, &input.memusage, why_out);
	else if (input.kind == INPUT_RECORDING)
		err = open_recording(data, size, &input.recording, why_out);
	else if (input.kind == INPUT_INSPECT)
		err = inspect_file_parse(data, size, &input.inspect, why_out);
	else
		err = open_massif(data, size, &input.massif, why_out);
	if (!err)
		*out = input;
	return err;
}

void input_deinit(struct input *input)
{
	massif_file_free(input->massif);
	memusage_file_free(input->memusage);
	samples_file_free(input->samples);
	recording_free(input->recording);
	inspect_file_free(input->inspect);
	*input = (struct input){0};
}
