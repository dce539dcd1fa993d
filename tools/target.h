/* Can a preloaded library reach this program at all? Read from its file before it runs. */
#ifndef CUCONST_TOOLS_TARGET_H
#define CUCONST_TOOLS_TARGET_H

enum target_kind {
	TARGET_REACHABLE,  /* as far as its file tells; scripts are followed to their interpreter */
	TARGET_UNREADABLE, /* nothing can be said */
	TARGET_STATIC,     /* no program interpreter: the loader never runs */
	TARGET_FOREIGN,    /* not a 64-bit x86-64 program */
	TARGET_SECURE,     /* setuid, setgid or file capabilities: the loader ignores LD_PRELOAD */
};

/* `path` as execve() takes it. Follows `#!` lines, four deep as the kernel does. */
enum target_kind target_check(const char *path);

/* Why the hooks cannot reach it, to follow "PROGRAM is"; NULL for the first two kinds. Static text. */
const char *target_reason(enum target_kind kind);

#endif
