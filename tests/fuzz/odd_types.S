/*
 * A program whose debug information is wrong in ways that mutations hardly reach: types that
 * contain, extend and point to themselves, arrays without end, members outside of their struct,
 * locations that are loops, names that refer to each other, scopes 20,000 levels deep.
 * Assembled for fuzz_symbols; what is valid is there to be mutated.
 */
	.text
	.globl _start
_start:	mov $60, %eax
	xor %edi, %edi
	syscall
	.skip 4096, 0x90

	.data
first:	.skip 4096

	.macro abbrev code, tag, children, pairs:vararg
	.uleb128 \code, \tag
	.byte \children
	.uleb128 \pairs
	.byte 0, 0
	.endm

	.section .debug_abbrev, "", @progbits
abbreviations:
	abbrev 1, 0x11, 1, 0x03, 0x08, 0x13, 0x0b	/* compile_unit: name, language */
	abbrev 2, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18 /* variable: name, type, location */
	abbrev 3, 0x13, 1, 0x03, 0x08, 0x0b, 0x06	/* structure_type: name, byte_size */
	abbrev 4, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0d /* member: name, type, location */
	abbrev 5, 0x01, 1, 0x49, 0x13			/* array_type: type */
	abbrev 6, 0x21, 0, 0x37, 0x07			/* subrange_type: count */
	abbrev 7, 0x16, 0, 0x03, 0x08, 0x49, 0x13	/* typedef: name, type */
	abbrev 8, 0x1c, 0, 0x49, 0x13, 0x38, 0x0d	/* inheritance: type, location */
	abbrev 9, 0x0f, 0, 0x49, 0x13			/* pointer_type: type */
	abbrev 10, 0x17, 1, 0x03, 0x08, 0x0b, 0x06	/* union_type: name, byte_size */
	abbrev 11, 0x04, 0, 0x03, 0x08, 0x49, 0x13, 0x0b, 0x06 /* enumeration_type */
	abbrev 12, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x18 /* member, located by expression */
	abbrev 13, 0x39, 1, 0x03, 0x08			/* namespace: name */
	abbrev 14, 0x34, 0, 0x47, 0x13, 0x02, 0x18	/* variable: specification, location */
	abbrev 15, 0x34, 0, 0x31, 0x13, 0x02, 0x18	/* variable: abstract_origin, location */
	abbrev 16, 0x33, 1, 0x15, 0x13			/* variant_part: discr */
	abbrev 17, 0x19, 1, 0x16, 0x0d			/* variant: discr_value */
	abbrev 18, 0x2f, 0, 0x03, 0x08, 0x49, 0x13	/* template_type_parameter */
	abbrev 19, 0x24, 0, 0x03, 0x08, 0x3e, 0x0b, 0x0b, 0x06 /* base_type: encoding, byte_size */
	abbrev 20, 0x26, 0, 0x49, 0x13			/* const_type */
	abbrev 21, 0x13, 1, 0x03, 0x08, 0x0b, 0x06, 0x47, 0x13 /* structure_type: specification */
	.byte 0

	.macro variable name, type
	.byte 2
	.asciz "\name"
	.long \type - unit
	.uleb128 9
	.byte 3		/* DW_OP_addr */
	.quad first
	.endm

	.macro placed name, type, bytes:vararg
	.byte 2
	.asciz "\name"
	.long \type - unit
	.uleb128 77f - 76f
76:	.byte \bytes
77:
	.endm

	.macro member name, type, offset
	.byte 4
	.asciz "\name"
	.long \type - unit
	.sleb128 \offset
	.endm

	.macro array label, type, count
\label:	.byte 5
	.long \type - unit
	.byte 6
	.quad \count
	.byte 0
	.endm

	.macro alias label, name, type
\label:	.byte 7
	.asciz "\name"
	.long \type - unit
	.endm

	.section .debug_info, "", @progbits
unit:	.long end - version
version:
	.short 4
	.long abbreviations
	.byte 8
	.byte 1
	.asciz "odd.cpp"
	.byte 4		/* C++ */
number:	.byte 19
	.asciz "int"
	.byte 5
	.long 4
self:	.byte 3
	.asciz "self"
	.long 16
	member "self", self, 0
	member "again", self, 8
	.byte 0
extends:
	.byte 3
	.asciz "extends"
	.long 8
	.byte 8
	.long extends - unit
	.sleb128 0
	.byte 18
	.asciz "T"
	.long extends - unit
	.byte 0
outside:
	.byte 3
	.asciz "outside"
	.long 16
	member "below", number, -8
	member "beyond", number, 0x7fffffffffffffff
	member "wide", endless, 0
	member "past", pointers, 12
	.byte 0
huge:	.byte 3
	.asciz "huge"
	.long 0xffffffff
	member "endless", endless, 0
	member "next", to_huge, 0xfffffff0
	.byte 0
to_huge:
	.byte 9
	.long huge - unit
either:	.byte 10
	.asciz "either"
	.long 64
	member "either", either, 0
	member "one", self, 0
	member "all", nested, 0
	.byte 0
	array endless, huge, -1
	array nested, nested, 2
	array pairs, pairs_2, 0x100000000
	array pairs_2, pairs, 0x100000000
	array pointers, itself, 4
	array empty, number, 0
itself:	.byte 9
	.long itself - unit
	alias chain_1, "chain", chain_2
	alias chain_2, "chain", chain_3
chain_3:
	.byte 20
	.long chain_1 - unit
kind:	.byte 11
	.asciz "kind"
	.long kind - unit
	.long 8
computed:
	.byte 3
	.asciz "computed"
	.long 32
	.byte 12
	.asciz "loop"
	.long number - unit
	.uleb128 3
	.byte 0x2f	/* DW_OP_skip, to itself */
	.short -3
	.byte 12
	.asciz "vtable"
	.long itself - unit
	.uleb128 5
	.byte 0x12, 0x06, 0x48, 0x1c, 0x22
	.byte 0
variant:
	.byte 3
	.asciz "variant"
	.long 16
part:	.byte 16
	.long part - unit
	.byte 17
	.sleb128 -1
	member "some", variant, 0
	.byte 0
	.byte 17
	.sleb128 0x7fffffffffffffff
	member "other", number, 64
	.byte 0
	.byte 0
	.byte 0
refers_1:
	.byte 21
	.asciz "refers"
	.long 8
	.long refers_2 - unit
	.byte 0
refers_2:
	.byte 21
	.asciz "refers"
	.long 8
	.long refers_1 - unit
	.byte 0
	variable "v_self", self
	variable "v_extends", extends
	variable "v_outside", outside
	variable "v_huge", huge
	variable "v_either", either
	variable "v_endless", endless
	variable "v_nested", nested
	variable "v_pairs", pairs
	variable "v_pointers", pointers
	variable "v_empty", empty
	variable "v_itself", itself
	variable "v_chain", chain_1
	variable "v_kind", kind
	variable "v_computed", computed
	variable "v_variant", variant
	variable "v_refers", refers_1
	placed "p_loop", number, 0x2f, 0xfd, 0xff
	placed "p_call", number, 0x99, 0x0b, 0, 0, 0
	placed "p_short", number, 0x03, 1
	placed "p_deref", number, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0x06, 0x06
	placed "p_plus", number, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0x23, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1
	placed "p_thread", self, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x9b
named_1:
	.byte 14
	.long named_2 - unit
	.uleb128 9
	.byte 3
	.quad first
named_2:
	.byte 15
	.long named_1 - unit
	.uleb128 9
	.byte 3
	.quad first + 8
	.rept 20000
	.byte 13
	.asciz "n"
	.endr
	variable "deep", self
	.skip 20000, 0
	.byte 0
end:
