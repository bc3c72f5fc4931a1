/*
 * gateway [REQUESTS [MS]]: a server under load. It takes REQUESTS requests (20,000) at once, answers them, and sleeps
 * for MS milliseconds (0). Most requests leave an audit record. Its memory does not shrink: doc/tutorial.md finds out why.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct request {
	struct request *next;
	int number;
	char body[2000];
};

struct audit {
	struct audit *next;
	int number, status;
	time_t time;
};

static struct audit *audits;
static int audit_count;

static struct audit *new_audit(void)
{
	return malloc(sizeof(struct audit));
}

static void record(int number)
{
	struct audit *a = new_audit();

	*a = (struct audit){audits, number, 200, time(NULL)};
	audits = a;
	audit_count++;
}

static struct request *take_request(int number, struct request *next)
{
	struct request *r = malloc(sizeof(*r));

	r->next = next;
	r->number = number;
	memset(r->body, 'x', sizeof(r->body));
	if (number % 64 < 58) /* the others only ask whether the server is alive */
		record(number);
	return r;
}

static void answer_all(struct request *list)
{
	while (list) {
		struct request *next = list->next;

		free(list);
		list = next;
	}
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 20000;
	struct request *list = NULL;

	for (int i = 0; i < count; i++)
		list = take_request(i, list);
	answer_all(list);
	dprintf(STDOUT_FILENO, "%d requests answered, %d audit records\n", count, audit_count);
	if (argc > 2)
		usleep(1000 * atoi(argv[2]));
	return 0;
}
