/* Starts a program as a child and is transparent for its signals, its terminal and its end. */
#ifndef CUCONST_TOOLS_LAUNCH_H
#define CUCONST_TOOLS_LAUNCH_H

#include <sys/types.h>

/* How a program ended. */
struct launch_end {
	int started; /* 0, or the errno of a failed execve() */
	int status;  /* as waitpid() gives it; not set when it did not start */
};

/* Called now and then while the child runs: at first every few hundredths of a second, later every half minute. */
typedef void (*launch_watch)(pid_t child, void *data);

/*
 * Runs argv[0], found as execvp() does, with the caller's environment and signal mask, and waits for it. While it runs:
 * signals sent to this process alone are passed on (those of the terminal reach the child by themselves), and when the
 * child is stopped by job control this process stops too and wakes it when it is continued. Not re-entrant: one child
 * at a time. Returns 0, or negative errno when no child could be made.
 */
int launch_wait(char *const *argv, launch_watch watch, void *data, struct launch_end *ret_end);

/*
 * Ends this process as the child ended: exits with its code, or dies of its signal (without a second core file), so
 * that a shell sees the same; exits with 128 + signal if that signal does not kill. Everything must be tidied up
 * before.
 */
void launch_end_alike(int status) __attribute__((noreturn));

#endif
