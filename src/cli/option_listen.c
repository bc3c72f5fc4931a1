/* See option_listen.h. */
#include "cli/option_listen.h"

#include <errno.h>

#include "base/log.h"
#include "listen/listen_address.h"
#include "session/options.h"

int option_check_listen(const struct options *o)
{
	struct listen_address address;
	const char *why = o->listen.at ? listen_address_parse(o->listen.at, &address) : NULL;

	if (why)
		log_error("--listen=%s: %s", o->listen.at, why);
	else if (!o->listen.at && (o->listen.token || o->listen.is_open || o->listen.linger > 0))
		log_error("--listen-token, --listen-open and --listen-linger go with --listen");
	else if (o->listen.token && o->listen.is_open)
		log_error("--listen-token and --listen-open cannot be combined");
	else if (o->listen.at && o->files.replay)
		log_error("--replay has no running program: --listen cannot be used with it");
	else if (o->listen.at && !o->listen.token && !o->listen.is_open &&
		 !listen_address_is_loopback(&address))
		log_error("--listen=%s: others can reach this address; it needs "
			  "--listen-token=FILE or --listen-open", o->listen.at);
	else
		return 0;
	return -EINVAL;
}
