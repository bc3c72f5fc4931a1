/* The grammar is a sequence of fields; messages name the option, and say what would be right. */
#include "tracee/state/custom_probe.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/option_row.h"
#include "base/text.h"

#define ARGUMENTS 6 /* that are passed in registers */

static const char usage[] =
	"a probe is alloc:FUNCTION:size=arg1, realloc:FUNCTION:arg1,size=arg2, free:FUNCTION:arg1, "
	"reset:FUNCTION:arg1, malloc=0xADDRESS, or @FILE";

/* -- fields -- */

/* "arg1" to "arg6", @size bytes at @text: its number, from 0. */
static bool parse_argument(const char *text, size_t size, uint8_t *out)
{
	if (size != 4 || strncmp(text, "arg", 3) != 0 || text[3] < '1' ||
	    text[3] >= '1' + ARGUMENTS)
		return false;
	*out = (uint8_t)(text[3] - '1');
	return true;
}

static bool parse_number(const char *text, size_t size, int base, uint64_t *out)
{
	char digits[24] = "", *end;

	if (size == 0 || size >= sizeof(digits) || !isdigit((unsigned char)*text))
		return false;
	memcpy(digits, text, size);
	errno = 0;
	*out = strtoull(digits, &end, base);
	return *end == '\0' && errno == 0;
}

/* "ret==0" */
static const char *parse_ok(const char *text, size_t size, struct probe *p)
{
	static const struct {
		const char *sign;
		enum probe_ok ok;
	} signs[] = {{"==", PROBE_OK_EQUAL}, {"!=", PROBE_OK_OTHER}, {">=", PROBE_OK_LEAST},
		     {">", PROBE_OK_MORE}};
	const char *at = text + 3, *stop = text + size;
	char *end = NULL;

	for (size_t i = 0; size > 3 && strncmp(text, "ret", 3) == 0 && i < ARRAY_SIZE(signs); i++) {
		size_t length = strlen(signs[i].sign);

		if (strncmp(at, signs[i].sign, length) != 0)
			continue;
		at += length;
		errno = 0;
		long value = strtol(at, &end, 0);
		if (end != stop || at == stop || isspace((unsigned char)*at) || errno != 0 ||
		    value != (int32_t)value)
			break;
		p->ok = (uint8_t)signs[i].ok;
		p->ok_value = (int32_t)value;
		return NULL;
	}
	return "ok= is a test of the result as an int: ret==0, ret!=0, ret>0 or ret>=0";
}

static const char *parse_result(const char *text, size_t size, struct probe *p)
{
	if (size == 3 && strncmp(text, "ret", 3) == 0)
		return NULL;
	if (size > 1 && *text == '*' && parse_argument(text + 1, size - 1, &p->result_arg))
		return NULL;
	return "result= is ret, or *arg1 for a function that stores the block's address there";
}

static const char *parse_size(const char *text, size_t size, struct probe *p)
{
	if (parse_argument(text, size, &p->size_arg) ||
	    parse_number(text, size, 0, &p->fixed_size))
		return NULL;
	return "size= is arg1 to arg6, or a number of bytes";
}

/* The field that an argument without a name is. */
static uint8_t *plain_field(struct probe *p, uint8_t *pool)
{
	return p->is_reset ? pool : p->kind == PROBE_ALLOC ? &p->size_arg : &p->block_arg;
}

struct field {
	const char *name, *value;
	size_t name_size, size;
};

static bool is_named(const struct field *f, const char *name)
{
	return f->name_size == strlen(name) && strncmp(f->name, name, f->name_size) == 0;
}

static const char *parse_field(const struct field *f, struct probe *p, uint8_t *pool)
{
	bool allocates = p->kind == PROBE_ALLOC || p->kind == PROBE_REALLOC;
	uint8_t *argument = NULL;

	if (!f->name_size)
		argument = plain_field(p, pool);
	else if (is_named(f, "size") && allocates)
		return parse_size(f->value, f->size, p);
	else if (is_named(f, "result") && allocates)
		return parse_result(f->value, f->size, p);
	else if (is_named(f, "ok") && allocates)
		return parse_ok(f->value, f->size, p);
	else if (is_named(f, "count") && allocates)
		argument = &p->count_arg;
	else if (is_named(f, "align") && p->kind == PROBE_ALLOC)
		argument = &p->align_arg;
	else if (is_named(f, "block") && p->kind != PROBE_ALLOC && !p->is_reset)
		argument = &p->block_arg;
	else if (is_named(f, "pool") && p->kind != PROBE_REALLOC)
		argument = pool;
	else
		return p->kind == PROBE_ALLOC ?
			       "alloc: has size=, count=, align=, pool=, result= and ok=" :
		       p->kind == PROBE_REALLOC ?
			       "realloc: has block=, size=, count=, result= and ok=" :
		       p->is_reset ? "reset: has pool=" : "free: has block= and pool=";
	return parse_argument(f->value, f->size, argument) ?
		       NULL :
		       "an argument is arg1 to arg6: those that are passed in registers";
}

/* "size=arg2,result=ret" */
static const char *parse_fields(const char *text, struct probe *p)
{
	uint8_t pool = PROBE_NO_ARG;

	for (const char *next; *text; text = next) {
		size_t size = strcspn(text, ",");
		size_t name = strcspn(text, "=,");
		struct field f = {.name = text, .name_size = name, .value = text + name + 1};

		next = text + size + (text[size] == ',');
		if (name == size)
			f = (struct field){.name = text, .value = text, .size = size};
		else
			f.size = size - name - 1;
		const char *why = parse_field(&f, p, &pool);
		if (why)
			return why;
	}
	p->pool = pool == PROBE_NO_ARG ? 0 : (uint8_t)(pool + 1);
	if (p->is_reset)
		return p->pool ? NULL : "which pool does it reset? reset:FUNCTION:arg1";
	if (p->kind != PROBE_ALLOC && p->block_arg == PROBE_NO_ARG)
		return "which argument is the block? free:FUNCTION:arg1";
	if (p->kind != PROBE_FREE && p->size_arg == PROBE_NO_ARG && !p->fixed_size)
		return "how many bytes are allocated? size=arg1, or a number";
	return NULL;
}

/* -- probes -- */

/* The last ':' of @text that is not of a "::", or NULL. */
static const char *last_colon(const char *text)
{
	for (size_t i = strlen(text); i-- > 1;) {
		if (text[i] == ':' && text[i - 1] != ':' && text[i + 1] != ':')
			return &text[i];
	}
	return NULL;
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * Sets @c->word: what precedes the parameters and template arguments, without scopes and the "~" of
 * a destructor. Operators have names of another kind when mangled, and so no word.
 */
static void find_word(struct custom_probe *c)
{
	static const char operator[] = "operator";
	size_t keyword = sizeof(operator) - 1, start = 0, end;
	_cleanup_free_ char *last = text_identifier(c->probe.symbol);

	c->is_operator = text_begins_with(last, operator) && last[keyword] &&
			 !is_of_word(last[keyword]);
	while (last[start] && !is_of_word(last[start]))
		start++;
	for (end = start; is_of_word(last[end]); end++)
		;
	c->word = c->is_operator ? xstrdup("") : xstrndup(last + start, end - start);
}

static bool parse_kind(const char *text, size_t size, struct probe *p)
{
	static const struct {
		const char *name;
		uint8_t kind;
		bool is_reset;
	} kinds[] = {{"alloc", PROBE_ALLOC, false}, {"realloc", PROBE_REALLOC, false},
		     {"free", PROBE_FREE, false}, {"reset", PROBE_FREE, true}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strlen(kinds[i].name) != size || strncmp(kinds[i].name, text, size) != 0)
			continue;
		p->kind = kinds[i].kind;
		p->is_reset = kinds[i].is_reset;
		p->function = p->kind == PROBE_FREE ? FUNCTION_RELEASE : FUNCTION_REQUEST;
		return true;
	}
	return false;
}

static const char *parse_function(const char *text, struct custom_probe *c)
{
	size_t kind = strcspn(text, ":");
	const char *function = text[kind] ? text + kind + 1 : NULL;
	const char *fields = function ? last_colon(function) : NULL;

	c->probe = (struct probe){.size_arg = PROBE_NO_ARG,
				  .count_arg = PROBE_NO_ARG, .align_arg = PROBE_NO_ARG,
				  .block_arg = PROBE_NO_ARG, .result_arg = PROBE_NO_ARG,
				  .may_throw = true};
	if (!parse_kind(text, kind, &c->probe) || !fields || fields == function)
		return usage;
	size_t size = (size_t)(fields - function);
	if (strncmp(function, "0x", 2) == 0 &&
	    (!parse_number(function, size, 16, &c->address) || !c->address))
		return "after 0x comes an address in the file, as objdump prints it";
	const char *why = parse_fields(fields + 1, &c->probe);
	if (why)
		return why;
	c->probe.symbol = xasprintf("%.*s", (int)size, function);
	find_word(c);
	return !c->address && !c->is_operator && !*c->word ? "the function has no name" : NULL;
}

/* "malloc=0x401230" */
static const char *parse_known(const struct probe *table, const char *text, size_t size,
			       struct custom_probe *c)
{
	for (const struct probe *p = table; p->symbol; p++) {
		if (strlen(p->symbol) != size || strncmp(p->symbol, text, size) != 0)
			continue;
		if (p->kind > PROBE_FREE)
			break;
		if (strncmp(text + size, "=0x", 3) != 0 ||
		    !parse_number(text + size + 1, strlen(text + size + 1), 16, &c->address) ||
		    !c->address)
			return "after = comes the address in the file, as objdump prints it: "
			       "malloc=0x401230";
		c->probe = *p;
		c->probe.symbol = xstrdup(p->symbol);
		return NULL;
	}
	return usage;
}

static void free_probe(struct custom_probe *c)
{
	free((char *)c->probe.symbol);
	free(c->word);
	free(c->text);
	free(c);
}

static const char *add(void *ctx, const char *text)
{
	struct custom_probes *p = ctx;
	struct custom_probe *c = xcalloc(1, sizeof(*c));
	size_t name = strcspn(text, "=:");
	const char *why = text[name] == '=' ? parse_known(p->table, text, name, c) :
					      parse_function(text, c);

	c->text = xstrdup(text);
	c->probe.custom = c;
	if (why)
		free_probe(c);
	else
		*vec_add(&p->list) = c;
	return why;
}

int custom_probes_add(struct custom_probes *p, const char *text)
{
	if (*text == '@')
		return option_read_lines(text + 1, add, p);
	const char *why = add(p, text);

	if (why)
		log_error("--probe=%s: %s", text, why);
	return why ? -EINVAL : 0;
}

void custom_probes_add_pointed(struct custom_probes *p, const char *text,
			       const char *const *setters, uint8_t group)
{
	CHECK(add(p, text) == NULL && group < 8);
	p->list.data[p->list.count - 1]->setters = setters;
	p->list.data[p->list.count - 1]->group = group;
}

struct custom_probe *custom_probes_within(struct custom_probes *p, const char *name, size_t size)
{
	for (size_t i = 0; i < p->list.count; i++) {
		struct custom_probe *c = p->list.data[i];

		if (c->probe.kind == PROBE_WITHIN && strlen(c->text) == size &&
		    strncmp(c->text, name, size) == 0)
			return c;
	}
	struct custom_probe *c = xcalloc(1, sizeof(*c));

	c->text = xstrndup(name, size);
	c->probe = (struct probe){.symbol = xstrdup(c->text), .kind = PROBE_WITHIN,
				  .size_arg = PROBE_NO_ARG, .count_arg = PROBE_NO_ARG,
				  .align_arg = PROBE_NO_ARG, .block_arg = PROBE_NO_ARG,
				  .result_arg = PROBE_NO_ARG, .custom = c};
	find_word(c);
	*vec_add(&p->list) = c;
	return c;
}

void custom_probes_deinit(struct custom_probes *p)
{
	vec_release(&p->list, e, free_probe(*e));
}

/* -- names -- */

/* A version follows @name. */
static bool begins_alike(const char *name, const char *symbol)
{
	return name[0] == symbol[0] && (!name[0] || name[1] == symbol[1] || name[1] == '@');
}

/* All symbols of all files are compared, with ptmem's own probes, too: the least is done first. */
static bool is_of(const struct custom_probes *p, const struct custom_probe *c,
		  const struct elf_symbol *sym)
{
	const char *symbol = c->probe.symbol;
	bool is_mangled = sym->name[0] == '_' && p->demangle && !c->setters;

	if (c->address || (!is_mangled && !begins_alike(sym->name, symbol)))
		return false;
	size_t size = strcspn(sym->name, "@");
	if (strncmp(symbol, sym->name, size) == 0 && !symbol[size])
		return true;
	bool may_be = c->is_operator || (*c->word && memmem(sym->name, size, c->word,
							   strlen(c->word)));

	if (!is_mangled || !may_be)
		return false;
	_cleanup_free_ char *name = p->demangle(sym->name);
	return name && text_is_function(name, symbol, strlen(symbol));
}

struct custom_probe *custom_probes_find(const struct custom_probes *p, const struct elf_symbol *sym)
{
	for (size_t i = 0; i < p->list.count; i++) {
		if (is_of(p, p->list.data[i], sym))
			return p->list.data[i];
	}
	return NULL;
}

bool custom_probe_is_guess(const struct probe *p)
{
	return p->custom && p->custom->address && !probe_is_own(p);
}

static bool was_called(const struct custom_probe *c)
{
	return (c->same ? c->same : c)->is_called;
}

const struct custom_probe *custom_probes_unused_free(const struct custom_probes *p)
{
	for (size_t i = 0; i < p->list.count; i++) {
		const struct custom_probe *c = p->list.data[i];
		if (custom_probe_is_guess(&c->probe) && c->probe.kind == PROBE_FREE &&
		    c->is_found && !was_called(c))
			return c;
	}
	return NULL;
}

bool custom_probes_have_guesses(const struct custom_probes *p)
{
	for (size_t i = 0; p && i < p->list.count; i++) {
		if (custom_probe_is_guess(&p->list.data[i]->probe))
			return true;
	}
	return false;
}

/* One that has been found instead of @c, whose name is another form of the same; NULL = none. */
static const struct custom_probe *find_other_name(const struct custom_probes *p,
						  const struct custom_probe *c)
{
	for (size_t i = 0; i < p->list.count; i++) {
		const struct custom_probe *o = p->list.data[i];

		if (o->is_found && (text_is_function(o->text, c->text, strlen(c->text)) ||
				    text_is_function(c->text, o->text, strlen(o->text))))
			return o;
	}
	return NULL;
}

void custom_probes_report(const struct custom_probes *p)
{
	const struct custom_probe *other;

	for (size_t i = 0; i < p->list.count; i++) {
		const struct custom_probe *c = p->list.data[i];

		const char *option = c->is_measured			? "--within=" :
				     c->is_label			? "--label=" :
				     c->probe.kind == PROBE_WITHIN	? "function " :
									  "--probe=";

		if (c->setters)
			continue;
		if (c->is_taken)
			log_warn("%s%s: it allocates or releases itself, and is counted without "
				 "this option", option, c->text);
		else if (!c->is_found && (other = find_other_name(p, c)))
			log_warn("%s%s: %s names this function, too: give it one name", option,
				 c->text, other->text);
		else if (!c->is_found)
			log_warn("%s%s: %s", option, c->text,
				 c->address ? "not in a program that was profiled" :
					      "no function of this name was found: it has no "
					      "symbol, or was inlined");
		else if (!was_called(c))
			log_warn("%s%s: it was never called", option, c->text);
	}
}
