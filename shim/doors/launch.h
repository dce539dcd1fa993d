/* What launch.S has to know of C: numbers alone, since the assembler reads it too. hook.h holds each of them to what it is. */
#ifndef CUCONST_DOORS_LAUNCH_H
#define CUCONST_DOORS_LAUNCH_H

/* In struct hook_line, struct hook_thread and struct hook_counts. */
#define LAUNCH_ARMED 0
#define LAUNCH_COUNTS 0
#define LAUNCH_DEPTH 8
#define LAUNCH_COUNT 8

/* enum memo_how */
#define LAUNCH_PASSES 1
#define LAUNCH_IS_WATCHED 2
#define LAUNCH_HAS_TWINS 3

#endif
