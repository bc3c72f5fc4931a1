/*
 * Arguments of probes as systemtap's notes spell them, in the assembler's AT&T way:
 *
 *	ARGUMENT := [SIZE "@"] OPERAND
 *	SIZE     := ["-"] ("1" | "2" | "4" | "8")             minus: signed
 *	OPERAND  := "$" NUMBER | REGISTER | MEMORY
 *	MEMORY   := [NUMBER] "(" [REGISTER] ["," REGISTER ["," ("1" | "2" | "4" | "8")]] ")"
 *	REGISTER := "%" NAME                                  the 16 general ones and their parts
 *	NUMBER   := decimal, 0x and hexadecimal, either with a sign
 *
 * Without SIZE the size is that of the register, else 8. Operands with a symbol, a segment, the
 * program counter or a vector register are rejected: general registers and memory do not give their
 * value.
 */
#include <errno.h>
#include <string.h>

#include "arch/operand_text.h"
#include "arch/x86_64/x86_64.h"

static bool take(struct operand_text *c, char expected)
{
	if (c->at == c->end || *c->at != expected)
		return false;
	c->at++;
	return true;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int take_number(struct operand_text *c, int64_t *out)
{
	bool is_negative = take(c, '-');
	uint64_t value = 0;
	unsigned base = 10, digits = 0;

	if (!is_negative)
		take(c, '+');
	if (c->end - c->at > 2 && c->at[0] == '0' && (c->at[1] | 0x20) == 'x') {
		base = 16;
		c->at += 2;
	}
	for (; c->at < c->end; c->at++, digits++) {
		int digit = digit_of(*c->at);
		if (digit < 0 || digit >= (int)base)
			break;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return -EINVAL;
	}
	if (digits == 0)
		return -EINVAL;
	*out = (int64_t)(is_negative ? -value : value);
	return 0;
}

struct register_name {
	const char *name;
	uint8_t word, size, shift;
};

/* Names that follow no rule; r8 to r15 and their parts do. */
static const struct register_name names[] = {
	{"rax", RAX, 8, 0}, {"eax", RAX, 4, 0}, {"ax", RAX, 2, 0},  {"al", RAX, 1, 0},
	{"ah", RAX, 1, 8},  {"rbx", RBX, 8, 0}, {"ebx", RBX, 4, 0}, {"bx", RBX, 2, 0},
	{"bl", RBX, 1, 0},  {"bh", RBX, 1, 8},	{"rcx", RCX, 8, 0}, {"ecx", RCX, 4, 0},
	{"cx", RCX, 2, 0},  {"cl", RCX, 1, 0},	{"ch", RCX, 1, 8},  {"rdx", RDX, 8, 0},
	{"edx", RDX, 4, 0}, {"dx", RDX, 2, 0},	{"dl", RDX, 1, 0},  {"dh", RDX, 1, 8},
	{"rsi", RSI, 8, 0}, {"esi", RSI, 4, 0}, {"si", RSI, 2, 0},  {"sil", RSI, 1, 0},
	{"rdi", RDI, 8, 0}, {"edi", RDI, 4, 0}, {"di", RDI, 2, 0},  {"dil", RDI, 1, 0},
	{"rbp", RBP, 8, 0}, {"ebp", RBP, 4, 0}, {"bp", RBP, 2, 0},  {"bpl", RBP, 1, 0},
	{"rsp", RSP, 8, 0}, {"esp", RSP, 4, 0}, {"sp", RSP, 2, 0},  {"spl", RSP, 1, 0},
};

static const uint8_t numbered[] = {R8, R9, R10, R11, R12, R13, R14, R15};

/* r8 to r15, with suffix d, w, b: 4, 2 or 1 bytes. */
static bool find_numbered(const char *name, size_t size, struct register_name *out)
{
	unsigned number = 0;
	size_t i = 1;

	if (size < 2 || name[0] != 'r')
		return false;
	for (; i < size && i < 3 && name[i] >= '0' && name[i] <= '9'; i++)
		number = number * 10 + (unsigned)(name[i] - '0');
	if (number < 8 || number > 15 || name[1] == '0' || size - i > 1)
		return false;
	const char *part = i < size ? strchr("bwd", name[i]) : "";
	if (!part)
		return false;
	*out = (struct register_name){NULL, numbered[number - 8],
				      *part == 'b' ? 1 :
				      *part == 'w' ? 2 :
				      *part == 'd' ? 4 :
						     8,
				      0};
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int take_register(struct operand_text *c, struct register_name *out)
{
	if (!take(c, '%'))
		return -EINVAL;
	const char *name = c->at;
	while (c->at < c->end && is_letter(*c->at))
		c->at++;
	size_t size = (size_t)(c->at - name);
	if (find_numbered(name, size, out))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strlen(names[i].name) == size && memcmp(names[i].name, name, size) == 0) {
			*out = names[i];
			return 0;
		}
	}
	return size > 0 ? -ENOTSUP :
			  -EINVAL; /* a vector or segment register, the program counter */
}

/* The part in parentheses of an address. */
static int take_address(struct operand_text *c, struct arch_operand *out)
{
	struct register_name base = {.word = ARCH_NO_REG, .size = 8}, index = base;
	int64_t scale = 1;
	int rc = 0;

	if (!take(c, '('))
		/* only a number or symbol: its address depends on where the object is loaded */
		return -ENOTSUP;
	if (c->at < c->end && *c->at == '%')
		rc = take_register(c, &base);
	if (rc == 0 && take(c, ',')) {
		rc = take_register(c, &index);
		if (rc == 0 && take(c, ','))
			rc = take_number(c, &scale);
	}
	if (rc != 0)
		return rc;
	bool is_scale = scale == 1 || scale == 2 || scale == 4 || scale == 8;
	if (!take(c, ')') || !is_scale || (base.word == ARCH_NO_REG && index.word == ARCH_NO_REG))
		return -EINVAL;
	if (base.size != 8 || index.size != 8)
		return -ENOTSUP;
	out->kind = OPERAND_MEMORY;
	out->base = base.word;
	out->index = index.word;
	out->scale = (uint8_t)scale;
	return 0;
}

static int take_operand(struct operand_text *c, struct arch_operand *out)
{
	struct register_name name;
	int rc;

	if (c->at < c->end && *c->at == '%') {
		rc = take_register(c, &name);
		if (rc != 0)
			return rc;
		if (c->at < c->end && *c->at == ':')
			return -ENOTSUP;
		out->kind = OPERAND_REGISTER;
		out->base = name.word;
		out->shift = name.shift;
		out->size = out->size ? MIN(out->size, name.size) : name.size;
		return 0;
	}
	if (take(c, '$')) {
		out->kind = OPERAND_CONSTANT;
		return take_number(c, &out->value);
	}
	if (c->at == c->end)
		return -EINVAL;
	char first = *c->at;
	bool is_symbol = is_letter(first | 0x20) || first == '_' || first == '.' || first == '-';
	if (first != '(' && take_number(c, &out->value) != 0)
		return is_symbol ? -ENOTSUP : -EINVAL;
	return take_address(c, out);
}

int x86_64_parse_operand(const char *text, size_t size, struct arch_operand *out)
{
	static const struct operand_grammar grammar = {take_number, take_operand};

	return operand_text_parse(&grammar, text, size, out);
}
