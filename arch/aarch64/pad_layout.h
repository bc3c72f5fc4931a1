/*
 * Offsets shared by the pads' assembly code and C. The pad's own words precede its code; struct
 * pad_head in recorder/pad_head.h is the same in C.
 */
#define PAD_HEAD_ENTER 8
#define PAD_HEAD_LEAVE 16
#define PAD_HEAD_RAW 24
#define PAD_HEAD_FINISH 32
#define PAD_HEAD_SIZE 80
#define PAD_PUSHED_SIZE 16 /* bytes of stack of a call: its mark, and the link register */
#define PAD_SAVE_SIZE 32   /* of the arguments, besides */
#define PAD_RAW_SIZE 96    /* of the callee-saved registers, besides */
#define PAD_MOVED_ROOM 48

#define RECORDER_MAGIC 0x64615070 /* "pPad" */
