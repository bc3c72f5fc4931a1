/* libmicrohttpd, which is loaded when it is needed: a ptmem without it has no --listen. */
#ifndef PTMEM_LISTEN_HTTP_LIBRARY_H
#define PTMEM_LISTEN_HTTP_LIBRARY_H

#include <microhttpd.h>

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

/* NULL, or why it cannot be loaded. */
const char *http_library_load(struct http_library *lib);

#endif
