/* Loads libmicrohttpd, or finds it in the program, and runs its thread. See http.h. */
#include "listen/http.h"

#if __has_include(<microhttpd.h>)

#include <dlfcn.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "listen/http_access.h"

/* The functions of the library that are used. */
#define HTTP_FUNCTIONS(X)                                                                         \
	X(MHD_start_daemon) X(MHD_suspend_connection) X(MHD_resume_connection)                   \
	X(MHD_queue_response) X(MHD_destroy_response) X(MHD_add_response_header)                 \
	X(MHD_lookup_connection_value) X(MHD_get_connection_values)                              \
	X(MHD_get_connection_info) X(MHD_quiesce_daemon) X(MHD_get_daemon_info)                  \
	X(MHD_create_response_from_buffer_with_free_callback_cls)

struct http_library {
#define X(name) __typeof__(name) *name;
	HTTP_FUNCTIONS(X)
#undef X
};

#define LIBRARY "libmicrohttpd.so.12"

/* Only a program that is linked statically has none. */
extern const char _DYNAMIC[] __attribute__((weak));

/* Only a program with which the library is linked has them. */
#define X(name) extern __typeof__(name) name __attribute__((weak));
HTTP_FUNCTIONS(X)
#undef X

static const char *load(struct http_library *lib)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return "it needs libmicrohttpd: install the package libmicrohttpd12, or run "
		       "scripts/install-deps build";
#define X(name)                                                                 \
	*(void **)&lib->name = dlsym(handle, #name);                            \
	if (!lib->name)                                                         \
		return "libmicrohttpd is too old: " #name " is not in it";
	HTTP_FUNCTIONS(X)
#undef X
	return NULL;
}

/* NULL, or why it cannot be loaded. */
static const char *http_library_load(struct http_library *lib)
{
	if (!MHD_start_daemon && _DYNAMIC)
		return load(lib);
	if (!MHD_start_daemon)
		return "this ptmem is linked statically without libmicrohttpd, and cannot load "
		       "it: use one that scripts/package has built, or --record";
#define X(name) lib->name = name;
	HTTP_FUNCTIONS(X)
#undef X
	return NULL;
}

#define MAX_CONNECTIONS 256u
#define MANY_CONNECTIONS 192u   /* above this number idle ones are closed */
#define IDLE_SECONDS 30u
#define MAX_HEADERS (16u << 10) /* of a request */
#define MAX_UNREAD (256u << 20) /* of unread answers */

/* A connection; accessed by the thread only. */
struct peer {
	struct http *http;
	int fd;
	bool is_busy;       /* those with a request */
	bool is_known, is_allowed;
	struct peer *next, *last; /* oldest first */
};

struct http {
	struct http_options options;
	struct http_library lib;
	struct MHD_Daemon *daemon;
	char own_name[256];
	struct peer peers;  /* the first is the oldest */
	unsigned peer_count;
	pthread_mutex_t lock; /* of the jobs */
	struct http_job *first, **end;
	atomic_size_t unread; /* bytes */
};

/* -- connections -- */

static void add_peer(struct http *h, struct peer *p)
{
	p->next = &h->peers;
	p->last = h->peers.last;
	p->last->next = h->peers.last = p;
	h->peer_count++;
}

/* Makes room by shutting down the oldest connection without a request. */
static void close_idle(struct http *h)
{
	for (struct peer *p = h->peers.next; p != &h->peers; p = p->next) {
		if (p->is_busy)
			continue;
		shutdown(p->fd, SHUT_RDWR);
		p->is_busy = true; /* not to be chosen again */
		return;
	}
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **own,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http *h = ctx;
	struct peer *p = *own;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		p->last->next = p->next;
		p->next->last = p->last;
		h->peer_count--;
		free(p);
		return;
	}
	p = xcalloc(1, sizeof(*p));
	p->http = h;
	p->fd = h->lib.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	*own = p;
	add_peer(h, p);
	if (h->peer_count > MANY_CONNECTIONS)
		close_idle(h);
}

static struct peer *peer_of(const struct http *h, struct MHD_Connection *c)
{
	return h->lib.MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

/* -- access -- */

static const char *header(const struct http *h, struct MHD_Connection *c, const char *name)
{
	return h->lib.MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Whether the connection is from this user or root. */
static bool is_own(struct peer *p)
{
	uid_t uid;

	if (!p->is_known) {
		p->is_allowed = peer_owner_find(p->fd, &uid) == 0 &&
				(uid == 0 || uid == geteuid());
		p->is_known = true;
	}
	return p->is_allowed;
}

static bool has_body(const struct http *h, struct MHD_Connection *c)
{
	const char *length = header(h, c, "Content-Length");

	return header(h, c, "Transfer-Encoding") ||
	       (length && strspn(length, "0") != strlen(length));
}

static enum MHD_Result count_host(void *ctx, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	*(unsigned *)ctx += strcasecmp(name, "Host") == 0;
	return MHD_YES;
}

/* What is answered without asking the server. */
struct refusal {
	unsigned status;
	const char *text;
};

/* @url: the host of a complete one counts, too. */
static struct refusal check_host(const struct http *h, struct MHD_Connection *c, const char *url)
{
	const char *host = header(h, c, "Host"), *own = h->own_name;
	struct http_target target;
	unsigned count = 0;

	h->lib.MHD_get_connection_values(c, MHD_HEADER_KIND, count_host, &count);
	if (count > 1)
		return (struct refusal){400, "there is more than one Host header\n"};
	if (!host || !listen_address_is_own_host(host, own) || !http_target_parse(url, &target) ||
	    (*target.host && !listen_address_is_own_host(target.host, own)))
		return (struct refusal){421, "the Host header is not a name of this server\n"};
	return (struct refusal){0, NULL};
}

/* Whether the page that sends the request, if one does, is this server's. */
static bool is_own_page(const struct http *h, struct MHD_Connection *c)
{
	const char *origin = header(h, c, "Origin"), *host = header(h, c, "Host");
	const char *site = header(h, c, "Sec-Fetch-Site");
	const char *rest = !origin ? NULL : text_after(origin, "http://") ?:
			   text_after(origin, "https://");

	return (!origin || (rest && host && strcasecmp(rest, host) == 0)) &&
	       (!site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0);
}

static struct refusal check_method(const struct http *h, struct MHD_Connection *c, const char *url,
				   const char *method)
{
	struct http_target target;

	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return (struct refusal){0, NULL};
	if (strcmp(method, "POST") != 0 || !http_target_parse(url, &target) ||
	    http_target_find(target.path) != HTTP_GRAPH)
		return (struct refusal){405, "only GET and HEAD are answered\n"};
	if (h->options.is_open && !h->options.token)
		return (struct refusal){403, "this stops the program: it needs --listen-token "
					     "instead of --listen-open\n"};
	if (!is_own_page(h, c))
		return (struct refusal){403, "the page of another site may not ask for that\n"};
	return (struct refusal){0, NULL};
}

static struct refusal find_refusal(struct http *h, struct MHD_Connection *c, const char *url,
				   const char *method)
{
	const struct refusal why = check_host(h, c, url), bad = check_method(h, c, url, method);

	if (bad.status)
		return bad;
	if (has_body(h, c))
		return (struct refusal){413, "no request has a body here\n"};
	if (why.status)
		return why;
	if (h->options.token && !http_token_is_right(header(h, c, "Authorization"),
						     h->options.token))
		return (struct refusal){401, "a token is needed\n"};
	if (!h->options.token && !h->options.is_open && !is_own(peer_of(h, c)))
		return (struct refusal){403, "this is another user's; --listen-token and "
					     "--listen-open let others in\n"};
	return (struct refusal){0, NULL};
}

/* -- answers -- */

/* Counts the bytes that clients have not read yet. */
struct body {
	struct http *http;
	char *data;
	size_t size;
};

static void free_body(void *ctx)
{
	struct body *b = ctx;

	atomic_fetch_sub(&b->http->unread, b->size);
	free(b->data);
	free(b);
}

/* Takes ownership of the body. */
static struct MHD_Response *make_response(struct http *h, struct http_job *job)
{
	struct body *b = xmalloc(sizeof(*b));

	*b = (struct body){h, job->body, job->size};
	job->body = NULL;
	atomic_fetch_add(&h->unread, b->size);
	struct MHD_Response *r = h->lib.MHD_create_response_from_buffer_with_free_callback_cls(
		b->size, b->data, free_body, b);

	if (!r)
		free_body(b);
	return r;
}

/* No other site may read, embed or run the pages, and no cache may keep them. */
static void add_headers(const struct http *h, struct MHD_Response *r, const struct http_job *job)
{
	static const char *const always[][2] = {
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Content-Security-Policy", "frame-ancestors 'none'"},
		{"Referrer-Policy", "no-referrer"},
	};
	char file[128];

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		h->lib.MHD_add_response_header(r, always[i][0], always[i][1]);
	h->lib.MHD_add_response_header(r, "Content-Type", job->type);
	if (job->is_gzip)
		h->lib.MHD_add_response_header(r, "Content-Encoding", "gzip");
	if (job->file_name) {
		snprintf(file, sizeof(file), "attachment; filename=\"%s\"", job->file_name);
		h->lib.MHD_add_response_header(r, "Content-Disposition", file);
	}
	if (job->graph) {
		snprintf(file, sizeof(file), "%u", job->graph);
		h->lib.MHD_add_response_header(r, "X-Graph", file);
	}
	if (job->status == 401)
		h->lib.MHD_add_response_header(r, "WWW-Authenticate", "Basic realm=\"ptmem\"");
	if (job->status == 405)
		h->lib.MHD_add_response_header(r, "Allow", "GET, HEAD");
	if (job->status == 413)
		h->lib.MHD_add_response_header(r, "Connection", "close");
}

void http_answer(struct http_job *job, unsigned status, const char *text)
{
	free(job->body);
	job->status = status;
	job->type = "text/plain; charset=utf-8";
	job->file_name = NULL;
	job->is_gzip = false;
	job->body = xstrdup(text);
	job->size = strlen(text);
}

static enum MHD_Result send_answer(struct http *h, struct MHD_Connection *c, struct http_job *job)
{
	if (atomic_load(&h->unread) > MAX_UNREAD)
		http_answer(job, 503, "too many answers have not been read by clients yet\n");
	struct MHD_Response *r = make_response(h, job);

	if (!r)
		return MHD_NO;
	add_headers(h, r, job);
	enum MHD_Result rc = h->lib.MHD_queue_response(c, job->status, r);

	h->lib.MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result refuse(struct http *h, struct MHD_Connection *c, struct refusal why)
{
	struct http_job job = {0};

	http_answer(&job, why.status, why.text);
	return send_answer(h, c, &job);
}

/* -- requests -- */

static const char *argument(const struct http *h, struct MHD_Connection *c, const char *name)
{
	return h->lib.MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

/* Where pprof's users expect a list. */
static bool is_index(const char *path)
{
	return strcmp(path, "/debug/pprof/") == 0 || strcmp(path, "/debug/pprof") == 0;
}

static struct refusal read_request(const struct http *h, struct MHD_Connection *c, const char *url,
				   struct http_job *job)
{
	const char *encoding = header(h, c, "Accept-Encoding"), *accept = header(h, c, "Accept");
	struct http_target target;

	http_target_parse(url, &target); /* its host was checked */
	job->path = http_target_find(target.path);
	if (job->path == HTTP_PATHS)
		return (struct refusal){is_index(target.path) ? 200 : 404, http_target_list};
	if (!http_target_number(argument(h, c, "pid"), INT32_MAX, &job->pid) ||
	    !http_target_number(argument(h, c, "seconds"), HTTP_MAX_SECONDS, &job->seconds))
		return (struct refusal){400, "pid and seconds are numbers, seconds up to 3600\n"};
	job->takes_gzip = encoding && strstr(encoding, "gzip");
	job->takes_openmetrics = accept && strstr(accept, "application/openmetrics-text");
	return (struct refusal){0, NULL};
}

static void put_job(struct http *h, struct http_job *job)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&h->lock);
	*h->end = job;
	h->end = &job->next;
	pthread_mutex_unlock(&h->lock);
	/* the counter is far from full, and the reader is alive or the process ends */
	if (write(h->options.wake_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

/*
 * Called with the target as received, before the library parses it. What it does not handle is
 * answered here.
 */
static void *on_target(void *ctx, const char *text, struct MHD_Connection *c)
{
	static const char answer[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
	int fd = peer_of(ctx, c)->fd;

	if (http_target_is_sound(text))
		return NULL;
	send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd, SHUT_RDWR);
	return NULL;
}

/*
 * Called with the head of a request, at its end, and when it was resumed. MHD closes a connection
 * that is answered, or suspended, before the end.
 */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **own)
{
	struct http *h = ctx;
	struct http_job *job = *own;
	struct refusal why;

	if (job && job->is_queued)
		return send_answer(h, c, job);
	if (job) {
		job->is_queued = true;
		h->lib.MHD_suspend_connection(c);
		put_job(h, job);
		return MHD_YES;
	}
	peer_of(h, c)->is_busy = true;
	why = find_refusal(h, c, url, method);
	if (why.status)
		return refuse(h, c, why);
	job = xcalloc(1, sizeof(*job));
	why = read_request(h, c, url, job);
	if (why.status) {
		free(job);
		return refuse(h, c, why);
	}
	job->http = h;
	job->connection = c;
	job->is_post = strcmp(method, "POST") == 0;
	*own = job;
	return MHD_YES;
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **own,
			 enum MHD_RequestTerminationCode code)
{
	struct http_job *job = *own;

	peer_of(ctx, c)->is_busy = false;
	if (job)
		free(job->body);
	free(job);
	*own = NULL;
}

struct http_job *http_take(struct http *h)
{
	pthread_mutex_lock(&h->lock);
	struct http_job *job = h->first;

	if (job)
		h->first = job->next;
	if (!h->first)
		h->end = &h->first;
	pthread_mutex_unlock(&h->lock);
	return job;
}

/* The connection is suspended: its descriptor stays open. */
bool http_is_abandoned(const struct http_job *job)
{
	struct pollfd p = {.events = POLLRDHUP};

	p.fd = job->http->lib.MHD_get_connection_info(
		job->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	return poll(&p, 1, 0) > 0;
}

void http_finish(struct http_job *job)
{
	job->http->lib.MHD_resume_connection(job->connection);
}

/* -- start and stop -- */

void http_stop_listening(struct http *h)
{
	int fd = h->lib.MHD_quiesce_daemon(h->daemon);

	if (fd >= 0)
		close(fd);
}

unsigned http_connections(const struct http *h)
{
	return h->lib.MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections;
}

const char *http_start(const struct http_options *o, struct http **out)
{
	struct http *h = xcalloc(1, sizeof(*h));
	const char *why = http_library_load(&h->lib);

	h->options = *o;
	h->end = &h->first;
	h->peers.next = h->peers.last = &h->peers;
	pthread_mutex_init(&h->lock, NULL);
	gethostname(h->own_name, sizeof(h->own_name) - 1);
	*out = h;
	if (why)
		return why;
	h->daemon = h->lib.MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		on_request, h, MHD_OPTION_LISTEN_SOCKET, o->fd, MHD_OPTION_CONNECTION_LIMIT,
		MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_HEADERS,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, h, MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_END);

	return h->daemon ? NULL : "libmicrohttpd does not start";
}

#else

const char *http_start(const struct http_options *o, struct http **out)
{
	return "this ptmem was built without libmicrohttpd: run scripts/install-deps build, then "
	       "make clean, then make";
}

void http_stop_listening(struct http *h)
{
}

unsigned http_connections(const struct http *h)
{
	return 0;
}

struct http_job *http_take(struct http *h)
{
	return NULL;
}

bool http_is_abandoned(const struct http_job *job)
{
	return false;
}

void http_finish(struct http_job *job)
{
}

void http_answer(struct http_job *job, unsigned status, const char *text)
{
}

#endif
