/*
 * Offsets that the pads' assembly and C share. The pad's own words stand before
 * its code; struct x86_pad_head in blob.h is the same in C.
 */
#define PAD_HEAD_ENTER 8
#define PAD_HEAD_LEAVE 16
#define PAD_HEAD_RAW 24
#define PAD_HEAD_FINISH 32
#define PAD_HEAD_SIZE 64
#define PAD_MOVED_ROOM 96
#define PAD_JUMP_SIZE 5
#define PAD_RED_ZONE 128

#define BLOB_MAGIC 0x64615070 /* "pPad" */
