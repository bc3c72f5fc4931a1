/*
 * At the first instruction the stack of a program begins with vectors of words (System V ABI,
 * "Initial Stack and Register State"; strings are above them):
 *
 *	sp    argc | argv..., 0 | variables..., 0 | auxiliary vector, ends with type AT_NULL
 *
 * All of them move down, to make room for the address of one more variable, and for its text, which
 * lies between the auxiliary vector and what was above it. The kernel keeps the addresses of
 * strings only, and its own copy of the auxiliary vector. It leaves sp aligned, and so does this.
 */
#include "tracee/inject/environment.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

#define WORDS_MAX (1u << 18) /* of the vectors */
#define WORDS_READ 512u      /* at a time; more than the rest of the stack need not be mapped */
#define STACK_ALIGNMENT 16u
#define WORD sizeof(uint64_t)

struct vectors {
	taddr_t at;
	VEC(uint64_t) words;
};

/* The word number @i, read when it is needed. */
static int word_at(const struct address_space *s, struct vectors *v, size_t i, uint64_t *out)
{
	uint64_t words[WORDS_READ];

	if (i >= WORDS_MAX)
		return -E2BIG;
	while (i >= v->words.count) {
		ssize_t n = space_read_some(s, v->at + v->words.count * WORD, words, sizeof(words));

		if (n < (ssize_t)WORD)
			return n < 0 ? (int)n : -EINVAL;
		for (size_t j = 0; j < (size_t)n / WORD; j++)
			*vec_add(&v->words) = words[j];
	}
	*out = v->words.data[i];
	return 0;
}

/* The index behind the first word that is 0, of every @step from @first on. */
static int find_end(const struct address_space *s, struct vectors *v, size_t step, size_t *index)
{
	uint64_t word = 1;
	int rc = 0;

	for (; rc == 0 && word; *index += step)
		rc = word_at(s, v, *index, &word);
	return rc;
}

/* The indexes behind the last variable, and behind the auxiliary vector. */
static int read_vectors(const struct address_space *s, struct vectors *v, size_t *variables_out,
			size_t *end_out)
{
	size_t i = 0;
	uint64_t argc = 0, zero = 1;
	int rc = word_at(s, v, i++, &argc);

	_Static_assert(AT_NULL == 0, "the end of the auxiliary vector");
	if (rc == 0 && argc >= WORDS_MAX)
		return -E2BIG;
	i += argc;
	if (rc == 0)
		rc = word_at(s, v, i++, &zero);
	if (rc == 0 && zero)
		return -EINVAL;
	if (rc == 0)
		rc = find_end(s, v, 1, &i);
	*variables_out = i - 1;
	if (rc == 0)
		rc = find_end(s, v, 2, &i);
	*end_out = i;
	return rc == 0 ? word_at(s, v, i - 1, &zero) : rc;
}

int environment_add(struct target *t, const struct address_space *s, const struct thread *th,
		    const char *text)
{
	struct arch_regs regs;
	size_t variables, end, text_words = ROUND_UP(strlen(text) + 1, WORD) / WORD;
	int rc = ptrace_get_regs(th->tid, &regs);

	if (rc != 0)
		return rc;
	struct vectors v = {.at = regs.word[t->arch->sp]};

	rc = read_vectors(s, &v, &variables, &end);
	if (rc == 0) {
		size_t room = ROUND_UP((1 + text_words) * WORD, STACK_ALIGNMENT) / WORD;
		_cleanup_free_ uint64_t *words = xcalloc(end + room, WORD);
		taddr_t sp = v.at - room * WORD;

		memcpy(words, v.words.data, variables * WORD);
		words[variables] = sp + (end + 1) * WORD;
		memcpy(words + variables + 1, v.words.data + variables, (end - variables) * WORD);
		memcpy(words + end + 1, text, strlen(text));
		rc = space_write(s, sp, words, (end + room) * WORD);
		if (rc == 0)
			rc = ptrace_set_word(th->tid, t->arch->sp, sp);
	}
	vec_deinit(&v.words);
	return rc;
}
