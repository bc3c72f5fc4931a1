/*
 * Lengths of common x86-64 instructions (Intel SDM, volume 2, appendix A). An opcode has a class in
 * one of two tables: what follows it, and whether it is understood here at all. VEX and EVEX,
 * 32-bit addresses, locked instructions and everything that pushes, pops or returns are left to
 * Zydis.
 */
#include "arch/x86_64/insn_skim.h"

#include <string.h>

enum class {
	X,   /* not understood here */
	P,   /* nothing follows */
	M,   /* ModRM */
	M8,  /* ModRM, one byte */
	MZ,  /* ModRM, four bytes, or two with an operand size prefix */
	G,   /* as M, M8 and MZ, but ModRM.reg is a part of the opcode */
	G8,
	GZ,
	T8,  /* 0xf6, 0xf7: as G, and a test has an immediate operand */
	TZ,
	F,   /* 0xff */
	I8,  /* one byte */
	IZ,  /* four bytes, or two */
	R8,  /* one byte, into the register that the opcode names */
	RV,  /* eight bytes with REX.W, else four or two, into that register */
	J8,  /* a conditional jump by one byte, by four bytes */
	JZ,
	D8,  /* a jump */
	DZ,
	C,   /* a call by four bytes */
	E,   /* a prefix */
	O,   /* 0x0f */
	T38, /* 0x0f38, 0x0f3a */
	T3A,
};

static const uint8_t one_byte[256] = {
	M, M, M, M, I8, IZ, X, X, M, M, M, M, I8, IZ, X, O,         /* 00 */
	M, M, M, M, I8, IZ, X, X, M, M, M, M, I8, IZ, X, X,         /* 10 */
	M, M, M, M, I8, IZ, E, X, M, M, M, M, I8, IZ, E, X,         /* 20 */
	M, M, M, M, I8, IZ, E, X, M, M, M, M, I8, IZ, E, X,         /* 30 */
	X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,             /* 40: REX */
	X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,             /* 50: push, pop */
	X, X, X, M, E, E, E, X, X, MZ, X, M8, X, X, X, X,           /* 60 */
	J8, J8, J8, J8, J8, J8, J8, J8, J8, J8, J8, J8, J8, J8, J8, J8,
	G8, GZ, X, G8, M, M, M, M, M, M, M, M, X, M, X, X,          /* 80 */
	X, X, X, X, X, X, X, X, P, P, X, X, X, X, P, P,             /* 90 */
	X, X, X, X, P, P, P, P, I8, IZ, P, P, P, P, P, P,           /* a0 */
	R8, R8, R8, R8, R8, R8, R8, R8, RV, RV, RV, RV, RV, RV, RV, RV,
	G8, G8, X, X, X, X, G8, GZ, X, X, X, X, X, X, X, X,         /* c0 */
	G, G, G, G, X, X, X, X, X, X, X, X, X, X, X, X,             /* d0 */
	X, X, X, X, X, X, X, X, C, DZ, X, D8, X, X, X, X,           /* e0 */
	X, X, E, E, X, P, T8, TZ, P, P, X, X, P, P, G, F,           /* f0 */
};

static const uint8_t two_byte[256] = {
	X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,             /* 00 */
	M, M, M, M, M, M, M, M, X, X, X, X, X, X, X, X,             /* 10 */
	X, X, X, X, X, X, X, X, M, M, M, M, M, M, M, M,             /* 20 */
	X, X, X, X, X, X, X, X, T38, X, T3A, X, X, X, X, X,         /* 30 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,             /* 40: cmov */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,             /* 50: SSE, as the following */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,             /* 60 */
	M8, X, X, X, M, M, M, X, X, X, X, X, M, M, M, M,            /* 70 */
	JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ, JZ,
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,             /* 90: set */
	X, X, X, M, M8, M, X, X, X, X, X, M, M8, M, X, M,           /* a0 */
	M, M, X, M, X, X, M, M, M, X, G8, M, M, M, M, M,            /* b0 */
	M, M, M8, M, M8, M8, M8, X, X, X, X, X, X, X, X, X,         /* c0 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,             /* d0 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,             /* e0 */
	M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, X,             /* f0 */
};

#define REX_B 1u
#define REX_R 4u
#define REX_W 8u
#define NONE skim_pack(SKIM_NONE, 0, 0)
#define MAX_LENGTH 15u /* of an instruction, bytes */

struct prefixes {
	uint8_t rex;
	bool is_short; /* 0x66 */
	bool is_other; /* a segment, or repeated */
};

/* Whether register @number, to which REX bit @extension belongs, may be rsp or rbp. */
static bool is_frame(unsigned number, unsigned extension, uint8_t rex)
{
	return (number & 6) == 4 && !(rex & extension);
}

/* Bytes of ModRM, SIB and displacement at @code, which has 6 bytes. */
static unsigned modrm_length(const uint8_t *code)
{
	unsigned mod = code[0] >> 6, rm = code[0] & 7, length = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		length++;
		if (mod == 0 && (code[1] & 7) == 5)
			return length + 4;
	} else if (rm == 5 && mod == 0) {
		return length + 4;
	}
	return length + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* Bytes of the immediate operand of @class; @modrm is the byte after the opcode. */
static unsigned immediate_length(enum class class, uint8_t modrm, const struct prefixes *p)
{
	unsigned z = p->is_short && !(p->rex & REX_W) ? 2 : 4;

	switch (class) {
	case M8: case G8: case I8: case R8:
		return 1;
	case MZ: case GZ: case IZ:
		return z;
	case RV:
		return p->rex & REX_W ? 8 : z;
	case T8:
		return (modrm >> 3 & 7) < 2 ? 1 : 0;
	case TZ:
		return (modrm >> 3 & 7) < 2 ? z : 0;
	default:
		return 0;
	}
}

/* The jump or call of @class whose operand is at @at, the instruction's length so far; packed. */
static inline uint64_t skim_branch(enum class class, const uint8_t *code, unsigned at)
{
	enum skim_kind kind = class == C ? SKIM_CALL :
			      class == J8 || class == JZ ? SKIM_JCC : SKIM_JMP;
	int32_t to;

	if (class == J8 || class == D8)
		return skim_pack(kind, at + 1, (int8_t)code[at]);
	memcpy(&to, code + at, sizeof(to));
	return skim_pack(kind, at + 4, to);
}

/* An instruction of @class without jumps; @at: bytes up to the opcode; packed. */
static inline uint64_t skim_plain(enum class class, const uint8_t *code, unsigned at,
			      const struct prefixes *p)
{
	bool has_modrm = class != P && class != I8 && class != IZ && class != R8 && class != RV;
	bool is_group = class >= G && class <= F;
	uint8_t modrm = code[at], last = code[at - 1];

	if ((class == R8 || class == RV) && is_frame(last & 7, REX_B, p->rex))
		return NONE;
	if (has_modrm && ((!is_group && is_frame(modrm >> 3 & 7, REX_R, p->rex)) ||
			  (modrm >> 6 == 3 && is_frame(modrm & 7, REX_B, p->rex))))
		return NONE;
	if ((last == 0xc6 || last == 0xc7) && is_group && modrm & 0x38) /* no mov */
		return NONE;
	unsigned reg = modrm >> 3 & 7, length = at;
	if (class == F && reg > 2)
		return NONE;
	length += (has_modrm ? modrm_length(code + at) : 0) + immediate_length(class, modrm, p);
	return skim_pack(class == F && reg == 2 ? SKIM_CALL : SKIM_PLAIN, length, 0);
}

static inline uint64_t skim_opcode(const uint8_t *code)
{
	struct prefixes p = {0};
	unsigned at = 0;
	enum class class;

	while ((class = (enum class)one_byte[code[at]]) == E) {
		p.is_short |= code[at] == 0x66;
		p.is_other |= code[at] != 0x66;
		if (++at == 4)
			return NONE;
	}
	if ((code[at] & 0xf0) == 0x40)
		p.rex = code[at++];
	class = (enum class)one_byte[code[at++]];
	if (class == O)
		class = (enum class)two_byte[code[at++]];
	if (class == T38 || class == T3A) {
		class = class == T38 ? M : M8;
		at++;
	}
	if (class >= J8 && class <= C)
		return p.is_short || p.is_other ? NONE : skim_branch(class, code, at);
	if (class == X || class >= E)
		return NONE;
	return skim_plain(class, code, at, &p);
}

#define READ_MOST (MAX_LENGTH + 16) /* bytes that skim_opcode may look at */

/* The same of the last bytes of the code. */
__attribute__((noinline)) static uint64_t skim_last(const uint8_t *code, size_t size)
{
	uint8_t copy[READ_MOST] = {0};

	memcpy(copy, code, size);
	return skim_opcode(copy);
}

uint64_t insn_skim_packed(const uint8_t *code, size_t size)
{
	uint64_t s = size < READ_MOST ? skim_last(code, size) : skim_opcode(code);
	unsigned length = s >> 8 & 0xff;

	return length > size || length > MAX_LENGTH ? NONE : s;
}
